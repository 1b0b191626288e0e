/* Steps that update nothing, and what is computed beside steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/run/mesh_fixture.h"
#include "train/loop/loop.h"
#include "train/monitor/private.h"

static const char base[] =
    "model:\n"
    "  vocab_size: 257\n"
    "  hidden_size: 16\n"
    "  num_layers: 3\n"
    "  num_heads: 2\n"
    "  intermediate_size: 24\n"
    "  delta: {distances: [1, 2], hidden: 4, gate_hidden: 4, regularizer: fixed, sparsity_weight: 1000}\n"
    "train: {steps: 9, batch_size: 8, micro_batch_size: 2, sequence_length: 8, noise_interval: 1}\n";

static struct mesh_case one = {{1, 1, 1}, {NULL}};

/* Of a batch without targets that count nothing is updated anyway: that gradients of a regulariser are too
 * much for fp16's loss scale does not end the run. (As the scale grows, so do floats.) */
static void an_overflow_where_nothing_counts(void **state) {
    (void)state;
    struct run run;
    struct step_report report;
    assert_int_equal(started(&run, base, &one), 0);
    connections_drawn(&run);
    const long weights = run.part.table->total;
    const double scale = sizeof(real) == 4 ? 0x1p127 : 0x1p1023;
    real *before = malloc((size_t)weights * sizeof *before);
    assert_non_null(before);
    memcpy(before, run.training.state.weight, (size_t)weights * sizeof *before);
    run.loss_scale = (struct loss_scale){.dynamic = true, .scale = scale};
    run.data.masked = true;
    run.data.counted.targets[0] = run.data.counted.targets[1] = 0;
    assert_int_equal(loop_step(&run, NULL, &report), 0);
    assert_false(isfinite(report.grad_norm)); /* else this tests nothing */
    assert_true(isnan(report.loss) && !run.trainer.verdict.asked && run.position.step == 1);
    assert_true(run.loss_scale.scale == scale);
    assert_memory_equal(before, run.training.state.weight, (size_t)weights * sizeof *before);
    free(before);
    ended(&run);
}

/* Connections' part of a step's time has nothing of what the noise's measurement has spent in them. */
static void the_noise_is_no_step(void **state) {
    (void)state;
    struct run run;
    struct rundir rundir = {.path = "/nowhere", .metrics.file = -1, .board.file = -1};
    struct progress progress = {.out = NULL};
    struct loop loop = {.run = &run, .rundir = &rundir};
    assert_int_equal(started(&run, base, &one), 0);
    assert_int_equal(monitor_create(&run, &rundir, &progress, &loop.monitor), 0);
    const double before = model_connection_seconds(run.trainer.model);
    assert_int_equal(loop_noise(&loop), 0);
    assert_true(model_connection_seconds(run.trainer.model) > before && loop.half_difference > 0);
    assert_true(loop.monitor->connection_seconds == model_connection_seconds(run.trainer.model));
    monitor_free(loop.monitor);
    ended(&run);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_where_nothing_counts),
        cmocka_unit_test(the_noise_is_no_step),
    };
    return run_on_ranks(tests, world_with_text, world_free);
}
