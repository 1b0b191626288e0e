/* gdn report: series and what is drawn of them, reading a run's metrics, text in HTML. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/scratch.h"
#include "tests/support/unit.h"
#include "train/report/live.h"
#include "train/report/read.h"
#include "train/report/text.h"

static void write_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch(), name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void write_metrics(const char *text) {
    write_file("metrics.jsonl", text);
}

#define STEP(step, loss, time)                                                                               \
    "{\"event\":\"step\",\"step\":" #step ",\"loss\":" #loss ",\"step_seconds\":2,\"time\":" #time "}\n"

/* Three steps, an evaluation, killed; goes on from one step done. Only what was done last counts. */
static void steps_done_again_count_once(void **state) {
    (void)state;
    write_metrics(
        "{\"event\":\"start\",\"step\":0,\"steps\":4,\"time\":100}\n" STEP(0, 5, 102) STEP(1, 4, 104)
            STEP(2, 3, 106) "{\"event\":\"eval\",\"step\":1,\"loss\":7,\"time\":106}\n"
                            "{\"event\":\"eval\",\"step\":3,\"loss\":3.5,\"time\":106}\n"
                            "{\"event\":\"gates\",\"step\":2,\"layer\":[1],\"distance\":[1],\"gate\":[0.5],"
                            "\"contribution\":[null],\"time\":106}\n"
                            "{\"event\":\"resume\",\"step\":1,\"steps\":4,\"time\":110}\n" STEP(1, 4.5, 112)
                                STEP(2, null, 120));
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    const struct series *loss = &run.curve[CURVE_LOSS], *validation = &run.curve[CURVE_VALIDATION];
    assert_int_equal(loss->count, 2);
    assert_true(loss->y[0] == 5 && loss->y[1] == 4.5);
    assert_int_equal(run.curve[CURVE_STEP_SECONDS].count, 3);
    assert_true(validation->count == 1 && validation->y[0] == 7);
    assert_int_equal(run.gates, 0);
    assert_true(run.done == 3 && run.restarts == 1 && run.steps == 4);
    assert_true(fabs(report_goodput(&run) - 6.0 / 20) < 1e-12);
    assert_int_equal(run.clock.count, 5 + 2); /* with the starts */
    assert_false(run.configured);
    report_run_free(&run);
}

/* Sets by name, which may come and go, and of which those of names that no set can have are left out. */
static void sets_by_name(void **state) {
    (void)state;
    write_metrics("{\"event\":\"eval\",\"step\":0,\"loss\":9,\"losses\":[1]}\n" STEP(
        0, 5, 102) "{\"event\":\"eval\",\"step\":1,\"loss\":7,\"losses\":{\"validation\":7,\"a-1\":6}}"
                   "\n" STEP(1, 5,
                             104) "{\"event\":\"eval\",\"step\":2,\"loss\":6,\"losses\":{\"<b>\":1,\"\":2,"
                                  "\"validation\":6,\"a-1\":null,\"new\":4}}\n" STEP(
                                      2, 5,
                                      106) "{\"event\":\"eval\",\"step\":3,\"loss\":5,\"losses\":{\"a-1\":3,"
                                           "\"new\":2}}\n"
                                           "{\"event\":\"resume\",\"step\":2,\"steps\":4,\"time\":110}\n");
    static const struct {
        const char *name;
        long count;
        double last;
    } wanted[] = {{"validation", 2, 6}, {"a-1", 1, 6}, {"new", 1, 4}};
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_int_equal(run.sets, 3);
    for (int s = 0; s < 3; s++) {
        const struct series *loss = &run.set[s].loss;
        assert_string_equal(run.set[s].name, wanted[s].name);
        assert_int_equal(loss->count, wanted[s].count);
        assert_true(loss->y[loss->count - 1] == wanted[s].last);
    }
    report_run_free(&run);
}

static void a_rewind_takes_steps_back(void **state) {
    (void)state;
    write_metrics(STEP(0, 5, 2) STEP(1, 4, 4)
                      STEP(2, 9, 6) "{\"event\":\"spike\",\"step\":2,\"what\":\"loss\",\"value\":9,"
                                    "\"action\":\"rewind\",\"to_step\":1,\"time\":6}\n");
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_true(run.done == 1 && run.curve[CURVE_LOSS].count == 1 && run.events == 1);
    assert_string_equal(run.event[0].text, "loss 9: rewind to step 1");
    report_run_free(&run);
}

/* Nothing was done since the run went back, but what was done before is lost all the same. */
static void a_resume_takes_steps_back(void **state) {
    (void)state;
    write_metrics(STEP(0, 5, 2) STEP(1, 4, 4) STEP(2, 9, 6) "{\"event\":\"resume\",\"step\":1,\"time\":9}\n");
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_true(run.done == 1 && run.curve[CURVE_LOSS].count == 1 && run.clock.count == 4);
    report_run_free(&run);
    write_metrics(STEP(0, 5, 2) STEP(1, 4, 4) "{\"event\":\"eval\",\"step\":2,\"loss\":3,\"time\":5}\n"
                                              "{\"event\":\"start\",\"step\":0,\"time\":9}\n");
    assert_int_equal(report_run_read(scratch(), &run), 0); /* killed before the first checkpoint */
    assert_true(run.done == 0 && run.curve[CURVE_LOSS].count == 0 && run.curve[CURVE_VALIDATION].count == 0);
    report_run_free(&run);
}

#define GATES(step, layer)                                                                                   \
    "{\"event\":\"gates\",\"step\":" #step ",\"layer\":[" #layer "],\"distance\":[1],\"gate\":[0." #layer    \
    "]}\n"

/* Many connections are several lines of a step; a step done again supersedes them all. */
static void gates_of_a_step_belong_together(void **state) {
    (void)state;
    static const int layer[] = {1, 7, 8, 9, 2};
    write_metrics(STEP(0, 5, 2) GATES(0, 1) STEP(1, 4, 4) GATES(1, 1) GATES(1, 2)
                      GATES(1, 3) "{\"event\":\"resume\",\"step\":1,\"time\":9}\n" STEP(1, 4, 4) GATES(1, 7)
                          GATES(1, 8) GATES(1, 9) STEP(2, 4, 4) GATES(2, 2));
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_int_equal(run.gates, 5);
    for (int i = 0; i < 5; i++)
        assert_true(run.gate[i].layer == layer[i] && run.gate[i].step == (i > 0) + (i > 3));
    report_run_free(&run);
    write_metrics(STEP(0, 5, 2) STEP(1, 4, 4) GATES(1, 1)
                      GATES(1, 2) "{\"event\":\"resume\",\"step\":1,\"time\":9}\n");
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_int_equal(run.gates, 0);
    report_run_free(&run);
}

#define CHANGE(event, step, layer, distance)                                                                 \
    "{\"event\":\"" #event "\",\"step\":" #step ",\"layer\":" layer ",\"distance\":" distance ",\"time\":3}\n"

/* Connections of a run that prunes: what changed before a step that is done again counts once. */
static void connections_in_use(void **state) {
    (void)state;
    struct report_run run;
    struct live live;
    write_file("config.yaml", "model: {num_layers: 3, delta: {distances: [1, 2]}}\n"
                              "train: {prune: {by: first_order, begin: 1, end: 5, interval: 1, keep: 0.3, regrow: 0.5}}\n");
    write_metrics("{\"event\":\"start\",\"step\":0,\"time\":0}\n" STEP(0, 5, 2) CHANGE(prune, 1, "[2]", "[1]")
                      STEP(1, 5, 4) CHANGE(prune, 2, "[1,2,9]", "[1,2,1]") CHANGE(regrow, 2, "[2]", "[1]") STEP(2, 5, 6)
                          CHANGE(prune, 3, "[2]", "[1]") "{\"event\":\"resume\",\"step\":2,\"time\":9}\n"
                              CHANGE(prune, 2, "[2]", "[2]") STEP(2, 5, 6) CHANGE(regrow, 3, "[2]", "[1]") STEP(3, 5, 6));
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_true(live_has(&run));
    assert_int_equal(live_of(&run, &live), 0);
    static const struct live_span wanted[] = {{0, 0, 4}, {1, 0, 1}, {1, 3, 4}, {2, 0, 2}}; /* (1, 1), (2, 1), (2, 2) */
    assert_int_equal(live.edges.measured, 3);
    assert_true(live.left == 2 && live.steps == 4);
    assert_int_equal(live.spans, sizeof wanted / sizeof *wanted);
    for (long i = 0; i < live.spans; i++)
        assert_true(live.span[i].edge == wanted[i].edge && live.span[i].from == wanted[i].from &&
                    live.span[i].to == wanted[i].to);
    live_free(&live);
    report_run_free(&run);

    /* Begun anew after it was killed without a checkpoint; and gone back after a spike. */
    write_metrics(STEP(0, 5, 2) CHANGE(prune, 1, "[2]", "[1]") STEP(1, 5, 4) "{\"event\":\"start\",\"step\":0,\"time\":9}\n"
                      STEP(0, 5, 2) CHANGE(prune, 1, "[1]", "[1]") STEP(1, 5, 4) CHANGE(prune, 2, "[2]", "[2]")
                          STEP(2, 5, 6) "{\"event\":\"spike\",\"step\":2,\"action\":\"rewind\",\"to_step\":2,\"time\":6}\n");
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_int_equal(live_of(&run, &live), 0);
    assert_true(live.left == 2 && live.spans == 3 && live.span[0].to == 1 && live.span[1].to == 2);
    live_free(&live);
    report_run_free(&run);
    write_file("config.yaml", "train: {steps: 3}\n"); /* that does not prune */
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_true(run.configured && !live_has(&run));
    report_run_free(&run);
    char path[128];
    snprintf(path, sizeof path, "%s/config.yaml", scratch());
    assert_int_equal(remove(path), 0);
}

/* Steps without an update, by a spike, a gradient that was not finite, or the loss scale. */
static void steps_left_out_are_no_goodput(void **state) {
    (void)state;
    write_metrics("{\"event\":\"start\",\"step\":0,\"time\":0}\n" STEP(0, 5, 2) STEP(
        1, 9, 4) "{\"event\":\"spike\",\"step\":1,\"action\":\"skip\",\"time\":4}\n"
                 "{\"event\":\"skip\",\"step\":1,\"reason\":\"spike\",\"time\":4}\n" STEP(
                     2, 5,
                     6) "{\"event\":\"step\",\"step\":3,\"grad_norm\":null,\"step_seconds\":2,\"time\":8}\n"
                        "{\"event\":\"loss_scale\",\"step\":3,\"reason\":\"gradient norm not finite, step "
                        "skipped\",\"time\":8}\n" STEP(
                            4, 5, 10) "{\"event\":\"loss_scale\",\"step\":4,"
                                      "\"reason\":\"all steps good for some time\",\"time\":10}\n" STEP(
                                          5, 5, 12) "{\"event\":\"loss_scale\",\"step\":5,\"reason\":"
                                                    "\"gradient norm not finite, step "
                                                    "skipped\",\"time\":20}\n");
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_int_equal(run.curve[CURVE_STEP_SECONDS].count, 6);
    assert_true(fabs(report_goodput(&run) - 6.0 / 20) < 1e-12);
    report_run_free(&run);
}

/* Without times, as older versions wrote them. */
static void what_is_not_told_is_unknown(void **state) {
    (void)state;
    write_metrics(
        "{\"event\":\"start\",\"step\":0}\n{\"event\":\"step\",\"step\":0,\"loss\":1,\"step_seconds\":2}\n");
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_true(isnan(report_goodput(&run)) && isnan(run.parameters) && run.clock.count == 0 &&
                !run.memory.there);
    report_run_free(&run);
}

static void refused(const char *text, const char *expected) {
    write_metrics(text);
    struct report_run run;
    gdn_failure_clear();
    assert_int_equal(report_run_read(scratch(), &run), GDN_INPUT);
    assert_non_null(strstr(gdn_failure(), expected));
    assert_non_null(strstr(gdn_failure(), "/metrics.jsonl, line "));
    gdn_failure_clear();
    report_run_free(&run);
}

static void bad_lines_are_named(void **state) {
    (void)state;
    refused(STEP(0, 1, 1) "{\"event\":\n", "line 2 is not JSON");
    refused(STEP(0, 1, 1) STEP(1, 1, 1) "nonsense\n" STEP(2, 1, 1), "line 3 is not JSON");
    refused("{\"event\":\x1b[31m\n", "near '?'"); /* no terminal obeys it */
    refused("[1, 2]\n", "line 1 is no event");
    refused("{\"event\":7}\n", "line 1 is no event");
    refused("{\"step\":7}\n", "line 1 is no event");
    refused("{\"event\":\"step\"}\n", "line 1: the event 'step' has no number \"step\"");
    refused("{\"event\":\"eval\",\"step\":\"3\"}\n", "no number \"step\"");
    refused(STEP(0, 1, 1) "\n", "line 2 is not JSON");
}

static void strange_lines_are_taken(void **state) {
    (void)state;
    write_metrics(
        "{\"event\":\"gates\",\"step\":0,\"layer\":[0,\"x\",-1,99999,3],\"distance\":[1,1,1,1],\"gate\":{}}\n"
        "{\"event\":\"gates\",\"step\":1}\n{\"event\":\"skip\",\"reason\":\"\xff/\xc3\xa9\"}\n"
        "{\"event\":\"memory\",\"planned_weights\":-5,\"reserved_weights\":1e30}\n"
        "{\"event\":\"huge\",\"n\":123456789012345678901234567890}\n"
        "{\"event\":\"step\",\"step\":9,\"loss\":\"high\",\"lr\":[1]}\n{\"event\":\"step\",\"st");
    struct report_run run;
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_int_equal(run.gates, 1);
    assert_true(isnan(run.gate[0].gate));
    assert_true(run.events == 2 && isnan(run.event[0].step));
    assert_string_equal(run.event[0].text, "?/\xc3\xa9");
    assert_int_equal(run.curve[CURVE_LOSS].count, 0);
    assert_true(run.done == 10);
    report_run_free(&run);
    write_metrics("{\"event\":\"skip\",\"reason\":\"\xed\xa0\x80|\xe0\x80\xaf|\xf0\x80\x80\xaf|"
                  "\xf4\x90\x80\x80|\xed\x9f\xbf\"}\n"); /* what looks like UTF-8 but is none, and a letter */
    assert_int_equal(report_run_read(scratch(), &run), 0);
    assert_string_equal(run.event[0].text, "???|???|????|????|\xed\x9f\xbf");
    report_run_free(&run);
    write_metrics("");
    assert_int_equal(report_run_read(scratch(), &run), 0);
    report_run_free(&run);
}

static void says(const char *line, const char *kind, const char *expected) {
    json_error_t error;
    json_t *object = json_loads(line, 0, &error);
    assert_non_null(object);
    char *text = report_text(kind, object);
    assert_string_equal(text, expected);
    free(text);
    json_decref(object);
}

static void events_in_words(void **state) {
    (void)state;
    says("{\"event\":\"alert\",\"rule\":\"latency\",\"words\":\"slow\"}", "alert", "slow");
    says("{\"event\":\"x\",\"step\":1,\"time\":2,\"rank\":3,\"late\":true,\"by\":0.125,\"of\":null}", "x",
         "rank 3, late yes, by 0.125, of unknown");
    says("{\"event\":\"stop\",\"reason\":\"stop file\"}", "stop", "stop file");
    says("{\"ranks\":1,\"device\":\"cpu\",\"skipped_checkpoints\":2}", "resume",
         "1 rank, cpu; 2 damaged checkpoints left out");
    says("{\"seconds\":75}", "finish", "1:15 since this start");
    says("{\"seconds\":0.266}", "finish", "266 ms since this start");
    says("{\"status\":0,\"reason\":\"\"}", "end", "status 0, finished");
    says("{\"status\":4,\"reason\":\"disk full\"}", "end", "status 4, not saved: disk full");
    says("{\"status\":77,\"reason\":\"x\"}", "end", "status 77, failed: x");
    says("{\"status\":null}", "end", "status unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_done_again_count_once),     cmocka_unit_test(sets_by_name),
        cmocka_unit_test(a_rewind_takes_steps_back),       cmocka_unit_test(a_resume_takes_steps_back),
        cmocka_unit_test(gates_of_a_step_belong_together), cmocka_unit_test(steps_left_out_are_no_goodput),
        cmocka_unit_test(what_is_not_told_is_unknown),     cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(strange_lines_are_taken),         cmocka_unit_test(events_in_words),
        cmocka_unit_test(connections_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
