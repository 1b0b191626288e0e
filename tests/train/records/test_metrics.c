/* metrics.jsonl: numbers read back the same, lines are whole, whatever happens to the disk. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/records/metrics.h"

static const char *path; /* of the file */

static void write_file(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Takes the time out of each line, which must be now. */
static void take_times(char *text) {
    for (char *at = text; (at = strstr(at, ",\"time\":"));) {
        char *end;
        assert_true(fabs(strtod(at + 8, &end) - (double)time(NULL)) < 60);
        memmove(at, end, strlen(end) + 1);
    }
}

static void check_file(const char *expected) {
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    take_times(text);
    assert_string_equal(text, expected);
}

static struct metrics opened(void) {
    struct metrics metrics;
    assert_int_equal(metrics_open(scratch(), &metrics), 0);
    return metrics;
}

static void one_line_each(void **state) {
    (void)state;
    write_file("");
    struct metrics metrics = opened();
    metrics_begin(&metrics, "eval");
    metrics_integer(&metrics, "step", 12345678901);
    metrics_number(&metrics, "loss", 0.1);
    metrics_number(&metrics, "bad", NAN);
    metrics_number(&metrics, "worse", -INFINITY);
    metrics_text(&metrics, "path", "a\"b\\c\nd\u00e9\xff\xc3");
    assert_int_equal(metrics_end(&metrics), 0);
    metrics_begin(&metrics, "finish");
    assert_int_equal(metrics_end(&metrics), 0);
    metrics_close(&metrics);
    check_file("{\"event\":\"eval\",\"step\":12345678901,\"loss\":0.1,\"bad\":null,\"worse\":null,"
               "\"path\":\"a\\\"b\\\\c\\u000ad\u00e9\ufffd\ufffd\"}\n{\"event\":\"finish\"}\n");
}

/* The number behind `key` in the line being built. */
static double number_in(const struct metrics *metrics, const char *key) {
    const char *at = strstr(metrics->line, key);
    assert_non_null(at);
    return strtod(at + strlen(key) + 2, NULL);
}

static void numbers_read_back_the_same(void **state) {
    (void)state;
    static const double values[] = {
        1.0 / 3, 5.57377602159977, 1e-300, 5e-324, 1.7976931348623157e308, 3, -0.1f, 1e23, 123456789.0};
    struct metrics metrics = {.file = -1};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        metrics_begin(&metrics, "step");
        metrics_number(&metrics, "x", values[i]);
        assert_true(number_in(&metrics, "x") == values[i]);
    }
}

static void a_step_has_every_key(void **state) {
    (void)state;
    write_file("");
    struct metrics metrics = opened();
    struct step_report report = {.step = 3,
                                 .loss = 2.5,
                                 .ce = 2.25,
                                 .sparsity = NAN,
                                 .entropy = 0.5,
                                 .grad_norm = 1.5,
                                 .lr = 1e-3,
                                 .active_distances = 2,
                                 .active_edges = 3,
                                 .tokens = 64,
                                 .tokens_per_second = 128,
                                 .step_seconds = 0.5,
                                 .communication_seconds = {0.25, 0, 0.125},
                                 .communication_bytes = {12345678901, 0, 8}};
    assert_int_equal(metrics_step(&metrics, &report), 0);
    metrics_close(&metrics);
    check_file(
        "{\"event\":\"step\",\"step\":3,\"loss\":2.5,\"ce\":2.25,\"sparsity\":null,\"entropy\":0.5,\"grad_"
        "norm\":1.5,"
        "\"lr\":0.001,\"active_distances\":2,\"active_edges\":3,\"tokens\":64,\"tokens_per_second\":128.0,\"step_seconds\":0.5,"
        "\"communication_seconds\":{\"data\":0.25,\"tensor\":0.0,\"pipeline\":0.125,\"context\":0.0},"
        "\"communication_bytes\":{\"data\":12345678901,\"tensor\":0,\"pipeline\":8,\"context\":0},"
        "\"model_flops_utilization\":null}\n");
}

static void an_unterminated_line_is_cut(void **state) {
    (void)state;
    static char long_line[10000]; /* longer than a block of the search for its beginning */
    memset(long_line, 'x', sizeof long_line - 1);
    static const char *const before[] = {"", "{\"a\":1}\n", "{\"a\":1}\n{\"b\":2}\n"};
    for (size_t i = 0; i < 3; i++) {
        for (int tail = 0; tail < 3; tail++) {
            char text[12000];
            snprintf(text, sizeof text, "%s%s", before[i], tail == 0 ? "" : tail == 1 ? "{\"ste" : long_line);
            write_file(text);
            struct metrics metrics = opened();
            metrics_close(&metrics);
            check_file(before[i]);
        }
    }
}

static void what_does_not_fit_leaves_whole_lines(void **state) {
    (void)state;
    write_file("{\"a\":1}\n");
    struct metrics metrics = opened();
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 20; /* the next line would end beyond: a part of it can be written, as on a full disk */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    metrics_begin(&metrics, "a longer event");
    int status = metrics_end(&metrics);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, GDN_INTERNAL);
    assert_non_null(strstr(gdn_failure(), path));
    assert_non_null(strstr(gdn_failure(), "File too large"));
    gdn_failure_clear();
    metrics_begin(&metrics, "later"); /* nothing follows a gap */
    assert_int_equal(metrics_end(&metrics), GDN_INTERNAL);
    metrics_close(&metrics);
    check_file("{\"a\":1}\n");
}

static void a_closed_one_is_silent(void **state) {
    (void)state;
    struct metrics metrics = {.file = -1};
    metrics_begin(&metrics, "step");
    assert_int_equal(metrics_end(&metrics), 0);
}

/* Terms of the loss that few runs have. */
static void terms_with_a_weight(void **state) {
    (void)state;
    write_file("");
    struct metrics metrics = opened();
    struct step_report report = {.loss = 2.5, .ce = 2.25, .z_loss = 9.5, .l1 = NAN, .exits = {3.5, NAN}, .num_exits = 2};
    assert_int_equal(metrics_step(&metrics, &report), 0);
    metrics_close(&metrics);
    char line[400];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    line[fread(line, 1, sizeof line - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(line, "\"entropy\":0.0,\"z_loss\":9.5,\"l1\":null,\"exits\":[3.5,null],\"grad_norm\":0.0,"));
}

int main(void) {
    path = strdup(scratch_path("metrics.jsonl"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_each),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(a_step_has_every_key), cmocka_unit_test(terms_with_a_weight),
        cmocka_unit_test(an_unterminated_line_is_cut),
        cmocka_unit_test(what_does_not_fit_leaves_whole_lines),
        cmocka_unit_test(a_closed_one_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
