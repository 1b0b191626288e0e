/* What training finds out by leaving each connection out (loop_leave_out): each one's own loss, on the data and with the
 * connections that it should be; a stop on the way changes nothing. */
#include "kernels/base/status.h"
#include "tests/train/run/mesh_fixture.h"
#include "train/loop/loop.h"
#include "train/prune/leave_out.h"

#include <stdlib.h>

static const char base[] =
    "model:\n"
    "  vocab_size: 263\n"
    "  hidden_size: 16\n"
    "  num_layers: 4\n"
    "  num_heads: 2\n"
    "  intermediate_size: 24\n"
    "  delta: {distances: [1, 2], hidden: 8, gate_hidden: 4}\n"
    "train: {steps: 9, batch_size: 16, micro_batch_size: 4, sequence_length: 64, eval_batches: 3,\n"
    "  prune: {by: leave_one_out, begin: 2, end: 6, interval: 2, batches: 2}}\n"
    "data: {validation_fraction: 0.2}\n";

enum { EDGES = 5 };

static struct mesh_case cases[] = {
    {{1, 1, 1}, {"model.delta.aggregate=attention"}},
    {{2, 1, 1}, {"model.delta.aggregate=mean"}},
    {{1, 1, 2}, {"mesh.interleave=2"}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* A clock of which every look is a second. */
static double now;
static double tick(void) {
    return now++;
}

static void nothing_found(const struct run *run) {
    assert_int_equal(run->pruning.measured, 0);
    assert_false(pruning_has_pruned(&run->pruning));
}

/* Asked to stop from the beginning, and, as rank 0 finds, after some rounds. */
static void stops(struct loop *loop, double *began) {
    struct stop stop = {.clock = tick, .looked = -1e9}, *before = loop->stop;
    loop->stop = &stop;
    for (int late = 0; late < 2; late++) {
        stop.reason = !late && loop->run->mesh.rank == loop->run->mesh.size - 1 ? STOP_TERM : STOP_NONE;
        if (late && loop->run->mesh.rank == 0) snprintf(stop.file, sizeof stop.file, "/nowhere/stop"), stop.end = now + 9;
        int status = loop_leave_out(loop, began);
        assert_int_equal(status, GDN_STOPPED);
        gdn_failure_clear();
        nothing_found(loop->run);
    }
    if (stop.file[0]) assert_true(now > stop.end - 1); /* it had gone that far */
    loop->stop = before;
}

static void each_alone(void **state) {
    struct run run;
    int status = started(&run, base, *state);
    assert_int_equal(status, 0);
    connections_drawn(&run);
    struct rundir rundir = {.path = "/nowhere", .metrics.file = -1, .board.file = -1};
    struct stop never = {.clock = tick};
    struct loop loop = {.run = &run, .rundir = &rundir, .progress = {.out = NULL}, .stop = &never};
    struct pruning *pruning = &run.pruning;
    double began = 0, whole, again, without;
    assert_int_equal(pruning->edges->count, EDGES);
    assert_int_equal(validation_sequences(&run.data.few, 0), 32);

    run.position.step = 3; /* no change is due */
    assert_int_equal(loop_leave_out(&loop, &began), 0);
    nothing_found(&run);
    run.position.step = 2;
    stops(&loop, &began);
    assert_true(began == 0);
    assert_int_equal(evaluation_choose(&run.evaluation, NULL), 0);
    status = evaluation_loss(&run.evaluation, NULL, NULL, NULL, &whole);
    assert_int_equal(status, 0);
    assert_int_equal(loop_leave_out(&loop, &began), 0);
    assert_true(began > 0 && pruning->measured == 1);
    assert_true(run.evaluation.result[0].loss == whole); /* the last evaluation's */
    assert_null(run.evaluation.pipeline.chosen);
    status = evaluation_loss(&run.evaluation, NULL, NULL, NULL, &again);
    assert_true(!status && again == whole);

    const struct leave_out job = {.evaluation = &run.evaluation, .data = &run.data.few};
    const bool all[EDGES] = {true, true, true, true, true};
    assert_int_equal(leave_out_loss(&job, all, &whole), 0);
    assert_true(whole != again); /* of fewer sequences */
    for (int e = 0; e < EDGES; e++) {
        bool has[EDGES] = {true, true, true, true, true};
        has[e] = false;
        assert_int_equal(leave_out_loss(&job, has, &without), 0);
        assert_true(without != whole && pruning->average[e] == without - whole);
        for (int i = 0; i < e; i++) assert_true(pruning->average[i] != pruning->average[e]);
    }
    ended(&run);
}

int rank_main(void) {
    struct CMUnitTest tests[CASES];
    size_t count = tests_of_cases(tests, each_alone, cases, CASES, sizeof *cases);
    return run_list_on_ranks("leave out", tests, count, world_with_text, world_free);
}
