/* A training step allocates nothing (tests/allocations.h). */
#include <stdio.h>
#include <stdlib.h>

#include "tests/allocations.h"
#include "tests/train/run/mesh_fixture.h"
#include "train/loop/loop.h"
#include "train/monitor/private.h"

static const char base[] =
    "model:\n"
    "  vocab_size: 263\n"
    "  hidden_size: 32\n"
    "  num_layers: 8\n"
    "  num_heads: 4\n"
    "  intermediate_size: 48\n"
    "  delta: {distances: [1, 2, 3], hidden: 8, gate_hidden: 4, stage_steps: 2}\n"
    "train: {steps: 9, batch_size: 16, micro_batch_size: 2, sequence_length: 8, gate_interval: 1}\n"
    "monitor: {interval: 1}\n"
    "mesh: {bucket: 2048, small: 300}\n";

enum { STEPS = 6 };

static struct mesh_case cases[] = {
    {{1, 1, 1}, {"model.delta.aggregate=attention", "model.delta.regularizer=adaptive"}},
    {{1, 1, 1}, {"train.recompute=full", "model.delta.kind=adaptive", "model.delta.normalize=true"}},
    {{1, 1, 1}, {"train.recompute=selective", "model.delta.kind=full", "model.delta.aggregate=multihead"}},
    {{2, 1, 1}, {"train.recompute=full"}},
    {{1, 2, 1}, {"mesh.sequence_parallel=true", "train.recompute=selective"}},
    {{1, 1, 2}, {"mesh.interleave=2", "model.tie_embeddings=true", "train.recompute=full"}},
    {{1, 1, 2}, {"mesh.compress_boundary=0.25", "mesh.narrow_sources=false"}},
    {{1, 2, 2}, {"mesh.wire=bf16"}},
    {{2, 1, 2}, {"mesh.overlap=false", "model.delta.hidden=2", "model.delta.gate_hidden=2"}},
    {{1, 2, 2}, {"model.delta.aggregate=attention", "train.recompute=full"}},
    {{2, 2, 1}, {"mesh.delta=connection"}},
    {{1, 1, 1}, {"model.delta.stage_steps=0", "train.prune={by: first_order, begin: 1, end: 9}"}},
    {{1, 1, 2}, {"model.delta.stage_steps=0", "data.validation_fraction=0.1", "train.prune={by: leave_one_out, begin: 1, end: 9}"}},
    {{2, 1, 2}, {"model.delta.stage_steps=0", "train.prune={by: contribution, begin: 1, end: 9}"}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The first step may fill caches that live on; the others do all that a step does, with one distance more
 * every two steps. */
static void test_steps(void **state) {
    struct run run;
    struct step_report report;
    int status = started(&run, base, *state);
    assert_int_equal(status, 0);
    struct rundir rundir = {.path = "/nowhere", .metrics.file = -1, .board.file = -1};
    struct progress progress = {.out = NULL};
    struct monitor *monitor;
    assert_int_equal(monitor_create(&run, &rundir, &progress, &monitor), 0);
    for (int step = 0; step < STEPS; step++) {
        if (run.config.train.prune.by && step % 2) { /* a change of the set: that allocates */
            for (int e = 0; e < run.pruning.edges->count; e++) run.pruning.has[e] = (e + step) % 3; /* some come back */
            assert_int_equal(run_choose(&run), 0);
        }
        allocations_count();
        status = loop_step(&run, NULL, &report);
        monitor->written = -1; /* metrics.prom at each step */
        monitor_step(monitor, &report);
        long made = allocations_counted();
        assert_int_equal(status, 0);
        if (made && step > 0)
            fail_msg("rank %d, step %d: %ld allocations, the last one from %s", run.mesh.rank, step, made,
                     allocations_last());
        assert_int_equal(run_read_batch(&run), 0);
    }
    assert_int_equal(monitor->failed, run.mesh.rank == 0); /* it was tried */
    monitor_free(monitor);
    ended(&run);
}

/* The counter counts: this program's own calls, of each kind. */
static void test_counter(void **state) {
    (void)state;
    void *volatile kept[5] = {0};
    allocations_count();
    kept[0] = malloc(10);
    kept[1] = calloc(2, 10);
    kept[2] = realloc(kept[0], 5000);
    kept[3] = aligned_alloc(64, 128);
    int status = posix_memalign((void **)&kept[4], 64, 128);
    long made = allocations_counted();
    assert_int_equal(status, 0);
    assert_int_equal(made, 5);
    for (int i = 1; i < 5; i++) free(kept[i]);
}

int rank_main(void) {
    struct CMUnitTest tests[1 + CASES] = {cmocka_unit_test(test_counter)};
    size_t count = 1 + tests_of_cases(tests + 1, test_steps, cases, CASES, sizeof *cases);
    return run_list_on_ranks("no allocation", tests, count, world_with_text, world_free);
}
