/* What monitoring is made of: percentiles, rules of alerts, effective connections, tallies of events, and the
 * text for Prometheus. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/records/metrics.h"
#include "train/monitor/private.h"

/* ------------------------------------------------------------------------------------- percentiles */

static void check_percentiles(const struct window *w, double p50, double p95, double p99) {
    double found[3];
    window_percentiles(w, (const double[]){50, 95, 99}, 3, found);
    assert_true(found[0] == p50 && found[1] == p95 && found[2] == p99);
}

static void percentiles_of_the_last_steps(void **state) {
    (void)state;
    struct window w = {.count = 0};
    double none;
    window_percentiles(&w, (const double[]){50}, 1, &none);
    assert_true(isnan(none));
    window_add(&w, 7, 0);
    check_percentiles(&w, 7, 7, 7);
    window_add(&w, 3, 0);
    check_percentiles(&w, 3, 7, 7);
    for (int i = 0; i < 1000; i++) window_add(&w, 1e9, 0); /* all to be forgotten */
    for (int i = 0; i < 100; i++) window_add(&w, 1 + i * 37 % 100, 0);
    check_percentiles(&w, 50, 95, 99);
    window_add(&w, 200, 0); /* 1, the oldest, goes */
    check_percentiles(&w, 51, 96, 100);
}

static void share_of_the_last_steps(void **state) {
    (void)state;
    struct window w = {.count = 0};
    assert_true(isnan(window_share(&w)));
    window_add(&w, 100, 100);
    for (int i = 0; i < 50; i++) {
        window_add(&w, 1, 0.25);
        window_add(&w, 3, 0.75);
    }
    assert_true(fabs(window_share(&w) - 0.25) < 1e-12); /* the first one is forgotten */
    window_add(&w, 5, 4);
    assert_true(fabs(window_share(&w) - 53.75 / 204) < 1e-12);
    window_add(&w, 1, NAN);
    assert_true(isnan(window_share(&w)));
}

/* ------------------------------------------------------------------------------------------ alerts */

/* A sample after every tenth step, as by default, of 0.625 s: a minute is 96 steps. The rules that raise an
 * alert, as bits. */
static int look(struct alerts *alerts, double p95, double rate, double share, double use) {
    static int64_t step = 9;
    struct alert alert[ALERT_RULES];
    step += 10;
    struct alert_look now = {.step = step, .seconds = 0.625 * (double)step, .value = {p95, rate, share, use}};
    int count = alerts_look(alerts, &now, alert), spoke = 0;
    for (int i = 0; i < count; i++) {
        assert_true(strlen(alert[i].text) > 80 && strlen(alert[i].text) < sizeof alert[i].text - 1);
        spoke |= 1 << alert[i].rule;
    }
    return spoke;
}

/* So many equal samples, none of which raises an alert. */
static void quiet(struct alerts *alerts, int looks, double p95, double rate, double share, double use) {
    for (int i = 0; i < looks; i++) assert_int_equal(look(alerts, p95, rate, share, use), 0);
}

enum { LATENCY = 1 << ALERT_LATENCY, THROUGHPUT = 1 << ALERT_THROUGHPUT };
enum { SHARE = 1 << ALERT_SHARE, USE = 1 << ALERT_USE };
enum { LASTS = 11 }; /* samples from the first to the one a hundred steps later */

/* Ten samples, bounds and all; then what lasts a hundred steps raises an alert, and a text says what it
 * is. */
static void slowness_needs_a_history(void **state) {
    (void)state;
    struct alerts a = {0};
    quiet(&a, 9, 1, 100, NAN, NAN);
    quiet(&a, 1, 5, 10, NAN, NAN); /* the tenth sample has nine before it */
    assert_int_equal(a.rule[ALERT_LATENCY].count, 10);

    a = (struct alerts){0};
    quiet(&a, 10, 1, 100, NAN, NAN);
    struct alerts b = a;
    quiet(&b, 2 * LASTS, 1.199, 85.1, NAN, NAN); /* just within */
    b = a;
    quiet(&b, LASTS - 1, 1.201, 85.1, NAN, NAN);
    assert_int_equal(look(&b, 1.201, 85.1, NAN, NAN), LATENCY);
    b = a;
    quiet(&b, LASTS - 1, 1.199, 84.9, NAN, NAN);
    assert_int_equal(look(&b, 1.199, 84.9, NAN, NAN), THROUGHPUT);
    b = a;
    for (int i = 1; i < LASTS; i++) look(&b, 2, 50, NAN, NAN);
    struct alert alert[ALERT_RULES];
    assert_int_equal(alerts_look(&b, &(struct alert_look){100000, 1e6, {2, 50, NAN, NAN}}, alert), 2);
    assert_true(alert[0].rule == ALERT_LATENCY && alert[0].value == 2 && alert[0].baseline == 1);
    assert_true(alert[1].rule == ALERT_THROUGHPUT && alert[1].value == 50 && alert[1].baseline == 100);
    assert_non_null(strstr(alert[0].text, "100 % more"));
    assert_non_null(strstr(alert[1].text, "50 % fewer"));
}

/* Samples at long intervals: five of them at least. */
static void a_few_looks_are_too_few(void **state) {
    (void)state;
    struct alerts a = {0};
    struct alert alert[ALERT_RULES];
    for (int i = 1; i <= 5; i++)
        assert_int_equal(alerts_look(&a, &(struct alert_look){1000 * i, 1e3 * i, {1, 1, 0.5, NAN}}, alert),
                         i == 5);
}

/* Steps of milliseconds: a thousand of them are no time. */
static void a_moment_is_too_short(void **state) {
    (void)state;
    struct alerts a = {0};
    struct alert alert[ALERT_RULES];
    for (int i = 1; i <= 7681; i++)
        assert_int_equal(alerts_look(&a, &(struct alert_look){10 * i, i / 128.0, {1, 1, 0.5, NAN}}, alert),
                         i == 7681);
}

/* As long as a condition holds, its rule raises no other alert; ten samples later the slow pace is the
 * usual one. */
static void rules_speak_once(void **state) {
    (void)state;
    struct alerts a = {0};
    quiet(&a, 10, 1, 100, NAN, NAN);
    quiet(&a, LASTS - 1, 2, 100, NAN, NAN);
    assert_int_equal(look(&a, 2, 100, NAN, NAN), LATENCY);
    assert_true(a.rule[ALERT_LATENCY].raised);
    quiet(&a, 20, 2, 100, NAN, NAN);
    assert_false(a.rule[ALERT_LATENCY].raised);
    quiet(&a, 20, 1, 100, NAN, NAN);
    quiet(&a, LASTS - 1, 1.5, 100, NAN, NAN);
    assert_int_equal(look(&a, 1.5, 100, NAN, NAN), LATENCY);
    quiet(&a, LASTS - 1, 1, 100, NAN, NAN);
    assert_true(a.rule[ALERT_LATENCY].raised); /* not over for long enough */
    quiet(&a, 1, 1, 100, NAN, NAN);
    assert_false(a.rule[ALERT_LATENCY].raised);
    quiet(&a, LASTS - 1, 1.5, 100, NAN, NAN);
    assert_int_equal(look(&a, 1.5, 100, NAN, NAN), LATENCY);
}

/* A machine with other work: throughput jumps, six slow steps in a hundred raise the 95th percentile for
 * ten samples. 600 steps, and another 6000. */
static void noise_is_no_news(void **state) {
    (void)state;
    struct alerts a = {0};
    for (int i = 0; i < 660; i++) {
        double rate = i % 5 == 0 ? 100 : 60 + i * 37 % 40, p95 = i / 10 % 3 == 1 ? 1.9 : 1;
        quiet(&a, 1, p95, rate, i % 7 ? 0.5 : 0.29, i % 10 ? 0.1 : 0.31);
    }
}

static void connections_have_fixed_bounds(void **state) {
    (void)state;
    struct alerts a = {0};
    quiet(&a, 2 * LASTS, 1, 100, NAN, NAN);
    quiet(&a, 2 * LASTS, 1, 100, 0.3, 0.3);
    quiet(&a, LASTS - 1, 1, 100, 0.31, 0.3);
    assert_int_equal(look(&a, 1, 100, 0.31, 0.3), SHARE);
    quiet(&a, LASTS - 1, 1, 100, 0.5, 0.29);
    assert_int_equal(look(&a, 1, 100, 0.5, 0.29), USE);
    quiet(&a, 50, 1, 100, 0.5, 0.1);
    quiet(&a, LASTS - 1, 1, 100, 0.1, 1); /* not long enough: as if it had not been */
    quiet(&a, 50, 1, 100, 0.5, 0.1);
    quiet(&a, LASTS, 1, 100, 0.1, 1);
    quiet(&a, LASTS - 1, 1, 100, 0.5, 0.1);
    assert_int_equal(look(&a, 1, 100, 0.5, 0.1), SHARE | USE);
}

static void effective(void **state) {
    (void)state;
    assert_true(isnan(effective_connections(NULL, 0)));
    assert_true(fabs(effective_connections((const double[]){2, 2, 2, 2}, 4) - 4) < 1e-12);
    assert_true(fabs(effective_connections((const double[]){0, 5, 0}, 3) - 1) < 1e-12);
    /* shares 1/2, 1/4, 1/4: an entropy of 1.5 bits */
    assert_true(fabs(effective_connections((const double[]){2, 1, 1}, 3) - pow(2, 1.5)) < 1e-12);
    assert_true(isnan(effective_connections((const double[]){1, NAN}, 2)));
}

/* ----------------------------------------------------------------------------------------- tallies */

static void check_tally(const struct tally *t, int64_t count, int64_t step, double time) {
    assert_int_equal(t->count, count);
    assert_int_equal(t->step, step);
    assert_true(fabs(t->time - time) < 1e-3);
}

static void events_are_counted(void **state) {
    (void)state;
    char path[100];
    snprintf(path, sizeof path, "%s/metrics.jsonl", scratch());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"event\":\"start\",\"step\":0,\"time\":100.500}\n"
          "{\"event\":\"step\",\"step\":8,\"loss\":1}\n"
          "{\"event\":\"stepping\",\"step\":99}\n"
          "not JSON\n\n{\"event\":\"",
          file);
    for (int i = 0; i < 200000; i++) fputc('x', file); /* longer than what it is read through */
    fputs("\",\"step\":7}\n"
          "{\"event\":\"checkpoint\",\"step\":9,\"files\":[1,2],\"time\":200.25}\n"
          "{\"event\":\"step\",\"step\":7,\"time\":300}\n"
          "{\"event\":\"spike\",\"step\":6,\"time\":300}\n"
          "{\"event\":\"spike\",\"step\":5}\n"
          "{\"event\":\"skip\",\"step\":5,\"reason\":\"spike\"}\n"
          "{\"event\":\"loss_scale\",\"step\":6,\"reason\":\"gradient norm not finite, step skipped\"}\n"
          "{\"event\":\"loss_scale\",\"step\":7,\"reason\":\"all steps good for some time\"}\n"
          "{\"event\":\"spike\",\"st", /* cut off */
          file);
    fclose(file);

    struct metrics metrics;
    assert_int_equal(metrics_open(scratch(), &metrics), 0);
    const struct tally *t = metrics.tallies.of;
    check_tally(&t[TALLY_START], 1, 0, 100.5);
    check_tally(&t[TALLY_STEP], 2, 8, 300);
    check_tally(&t[TALLY_CHECKPOINT], 1, 9, 200.25);
    check_tally(&t[TALLY_SPIKE], 2, 5, 0);
    check_tally(&t[TALLY_SKIP], 2, 6, 0); /* by a spike, and by the loss scale */
    check_tally(&t[TALLY_ALERT], 0, -1, 0);

    metrics_begin(&metrics, "alert");
    metrics_integer(&metrics, "step", 12);
    metrics_text(&metrics, "words", "never mind,\"step\":13");
    assert_int_equal(metrics_end(&metrics), 0);
    assert_int_equal(t[TALLY_ALERT].count, 1);
    assert_int_equal(t[TALLY_ALERT].step, 12);
    assert_true(t[TALLY_ALERT].time > 1e9);
    metrics_close(&metrics);
}

/* -------------------------------------------------------------------------------------- Prometheus */

static char text[1 << 16];

static const char *file_text(void) {
    char path[100];
    snprintf(path, sizeof path, "%s/metrics.prom", scratch());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void text_format(void **state) {
    (void)state;
    struct prometheus p;
    char *whole = realpath(scratch(), NULL);
    assert_non_null(whole);
    assert_int_equal(prometheus_open(&p, scratch(), 4), 0);
    prometheus_begin(&p);
    prometheus_value(&p, "gdn_up", "gauge", "Whether.", 1);
    prometheus_value(&p, "gdn_unknown", "gauge", "Left out.", NAN);
    prometheus_metric(&p, "gdn_time_seconds", "summary", "Times.");
    prometheus_sample(&p, "", "quantile=\"0.5\"", 0.25);
    prometheus_sample(&p, "_sum", "", INFINITY);
    assert_int_equal(prometheus_write(&p), 0);
    char wanted[1024];
    snprintf(wanted, sizeof wanted,
             "# HELP gdn_up Whether.\n# TYPE gdn_up gauge\ngdn_up{run=\"%s\"} 1.0\n"
             "# HELP gdn_time_seconds Times.\n# TYPE gdn_time_seconds summary\n"
             "gdn_time_seconds{run=\"%s\",quantile=\"0.5\"} 0.25\ngdn_time_seconds_sum{run=\"%s\"} +Inf\n",
             whole, whole, whole);
    free(whole);
    assert_string_equal(file_text(), wanted);

    /* A text that does not fit is not written; the file that is there stays. */
    prometheus_begin(&p);
    for (int i = 0; i < 1000; i++) prometheus_value(&p, "gdn_many", "gauge", "Too many of them.", i);
    assert_int_equal(prometheus_write(&p), -1);
    assert_non_null(strstr(p.failure, "metrics.prom"));
    assert_string_equal(file_text(), wanted);
    prometheus_free(&p);
}

/* However the directory is spelt, from wherever. */
static void a_run_keeps_its_label(void **state) {
    (void)state;
    struct prometheus whole, other;
    char spelt[200], *before = getcwd(NULL, 0);
    assert_int_equal(prometheus_open(&whole, scratch(), 1), 0);
    assert_int_equal(chdir(scratch()), 0);
    snprintf(spelt, sizeof spelt, "../%s/.", strrchr(scratch(), '/') + 1);
    assert_int_equal(prometheus_open(&other, spelt, 1), 0);
    assert_string_equal(whole.run, other.run);
    assert_int_equal(chdir(before), 0);
    prometheus_free(&whole);
    prometheus_free(&other);
    free(before);
}

static void a_file_can_be_removed(void **state) {
    (void)state;
    struct prometheus p;
    assert_int_equal(prometheus_open(&p, scratch(), 1), 0);
    prometheus_begin(&p);
    assert_int_equal(prometheus_write(&p), 0);
    assert_int_equal(access(p.path, F_OK), 0);
    prometheus_free(&p);
    assert_int_equal(prometheus_remove(&p, scratch()), 0);
    assert_int_equal(access(p.path, F_OK), -1);
    assert_int_equal(prometheus_remove(&p, scratch()), 0); /* there is none */
    assert_int_equal(mkdir(p.path, 0777), 0);
    assert_int_equal(prometheus_remove(&p, scratch()), -1);
    assert_non_null(strstr(p.failure, "metrics.prom: cannot remove: "));
    assert_int_equal(rmdir(p.path), 0);
}

static void labels_are_escaped(void **state) {
    (void)state;
    struct prometheus p;
    assert_int_equal(prometheus_open(&p, "a\\b\"c\nd\u00e9\xff", 1), 0);
    assert_string_equal(p.run, "run=\"a\\\\b\\\"c\\nd\u00e9\ufffd\"");
    prometheus_begin(&p);
    prometheus_value(&p, "gdn_up", "gauge", "Whether.", 1);
    assert_int_equal(prometheus_write(&p), -1); /* there is no such directory */
    assert_non_null(strstr(p.failure, "No such file or directory"));
    assert_string_equal(gdn_failure(), ""); /* whose words are the run's */
    prometheus_free(&p);
}

/* ------------------------------------------------------------------------------------------ system */

static void the_process(void **state) {
    (void)state;
    assert_in_range(monitor_resident(), 1 << 16, (int64_t)1 << 40);
    double before = monitor_age();
    assert_true(before >= 0 && before < 3600);
    usleep(100000);
    assert_true(monitor_age() >= before + 0.09 && monitor_age() < before + 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_of_the_last_steps),
        cmocka_unit_test(share_of_the_last_steps),
        cmocka_unit_test(slowness_needs_a_history),
        cmocka_unit_test(a_few_looks_are_too_few),
        cmocka_unit_test(a_moment_is_too_short),
        cmocka_unit_test(rules_speak_once),
        cmocka_unit_test(noise_is_no_news),
        cmocka_unit_test(connections_have_fixed_bounds),
        cmocka_unit_test(effective),
        cmocka_unit_test(events_are_counted),
        cmocka_unit_test(text_format),
        cmocka_unit_test(a_run_keeps_its_label),
        cmocka_unit_test(a_file_can_be_removed),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
