/* A training step allocates nothing (tests/allocations.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/allocations.h"
#include "tests/train/run/mesh_fixture.h"
#include "tests/support/unit.h"
#include "train/loop/loop.h"
#include "train/monitor/private.h"
#include "train/run/ranks.h"

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

enum { SETTINGS = 6, STEPS = 6 };

struct example {
    int data, tensor, pipeline;
    char *set[SETTINGS];
};

static struct example examples[] = {
    {1, 1, 1, {"model.delta.aggregate=attention", "model.delta.regularizer=adaptive"}},
    {1, 1, 1, {"train.recompute=full", "model.delta.kind=adaptive", "model.delta.normalize=true"}},
    {1, 1, 1, {"train.recompute=selective", "model.delta.kind=full", "model.delta.aggregate=multihead"}},
    {2, 1, 1, {"train.recompute=full"}},
    {1, 2, 1, {"mesh.sequence_parallel=true", "train.recompute=selective"}},
    {1, 1, 2, {"mesh.interleave=2", "model.tie_embeddings=true", "train.recompute=full"}},
    {1, 1, 2, {"mesh.compress_boundary=0.25", "mesh.narrow_sources=false"}},
    {2, 1, 2, {"mesh.overlap=false", "model.delta.hidden=2", "model.delta.gate_hidden=2"}},
    {1, 2, 2, {"model.delta.aggregate=attention", "train.recompute=full"}},
    {2, 2, 1, {"mesh.delta=connection"}},
};

static struct mesh *world;
static char path[] = "/tmp/test_no_allocation_XXXXXX";

static int start(struct run *run, const struct example *example) {
    struct overrides overrides;
    overrides_fill(&overrides, example->data, example->tensor, example->pipeline, path, example->set,
                   SETTINGS);
    TRY(prepared(run, base, &overrides));
    return readied(run);
}

/* The first step may fill caches that live on; the others do all that a step does, with one distance more
 * every two steps. */
static void test_steps(void **state) {
    struct run run = {.best_loss = NAN, .mesh = *world};
    struct step_report report;
    int status = start(&run, *state);
    *world = run.mesh;
    assert_int_equal(status, 0);
    struct rundir rundir = {.path = "/nowhere", .metrics.file = -1, .board.file = -1};
    struct progress progress = {.out = NULL};
    struct monitor *monitor;
    assert_int_equal(monitor_create(&run, &rundir, &progress, &monitor), 0);
    for (int step = 0; step < STEPS; step++) {
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
    run_free(&run);
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

int main(void) {
    struct mesh mesh;
    struct CMUnitTest tests[1 + sizeof examples / sizeof *examples] = {cmocka_unit_test(test_counter)};
    size_t count = 1;
    int bad = ranks_begin(&mesh);
    world = &mesh;
    if (!bad) bad = !make_up_text(&mesh, path);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct example *e = &examples[i];
        if (e->data * e->tensor * e->pipeline != mesh.size) continue;
        tests[count++] = (struct CMUnitTest){e->set[0], test_steps, NULL, NULL, e};
    }
    if (!bad) bad = _cmocka_run_group_tests("no allocation", tests, count, NULL, NULL);
    if (mesh.rank == 0) unlink(path);
    return ranks_end(&mesh, bad != 0);
}
