/* Checkpoints in the background: what is saved is the state as it was when the save began, whatever training
 * does meanwhile; a copy that went wrong is found; the next one waits; failures are told of once, on all
 * ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/checkpoint/snapshot.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"
#include "train/loop/saver.h"
#include "train/run/run.h"

static const char base[] = "model:\n"
                           "  vocab_size: 263\n"
                           "  hidden_size: 96\n"
                           "  num_layers: 4\n"
                           "  num_heads: 4\n"
                           "  intermediate_size: 256\n"
                           "  delta: {distances: [1, 2], hidden: 8, gate_hidden: 4}\n"
                           "train: {steps: 2, batch_size: 4, sequence_length: 8}\n"
                           "checkpoint: {interval: 1, keep: 0}\n"
                           "mesh: {bucket: 20000, small: 300}\n";

/* A run that could be trained, with a state that is a function of `seed`. */
static void fill(struct run *run, int seed) {
    for (long i = 0; i < run->part.table->total; i++)
        run->training.state.weight[i] = (real)(seed + (i % 1009) * 1e-3);
    for (long i = 0; i < run->part.shards->moments; i++) {
        run->training.state.moment[0][i] = (real)(2 * seed + (i % 997) * 1e-3);
        run->training.state.moment[1][i] = (real)(3 * seed + (i % 991) * 1e-3);
    }
    for (int i = 0; i < run->part.table->rows; i++) run->training.state.steps[i] = 100 * seed + i;
}

static void start(struct run *run, char *set) {
    char data[SCRATCH_LONGEST + 40], *settings[] = {data, "device=cpu", set};
    struct config config;
    run_init(run);
    run->mesh = world;
    snprintf(data, sizeof data, "data.train=%s", scratch_path("text"));
    assert_int_equal(config_parse(base, "test", settings, set ? 3 : 2, &config), 0);
    assert_int_equal(run_configure_as(run, &config), 0);
    assert_int_equal(run_prepare(run, NULL), 0);
    assert_int_equal(run_open_data(run, NULL), 0);
    assert_int_equal(run_plan(run), 0);
    assert_int_equal(run_reserve(run), 0);
    world = run->mesh;
}

static struct saver *saver_of(struct run *run, const char *directory) {
    const struct saver_setup setup = {&run->mesh,       run->ops,       &run->config,
                                      run_content(run), &run->training, directory};
    struct saver *saver;
    assert_int_equal(saver_create(&setup, &saver), 0);
    return saver;
}

static struct checkpoint_info info_of(struct run *run, int64_t step) {
    return (struct checkpoint_info){
        .step = step, .samples = 7 * step, .config = run->config_text, .best_loss = NAN, .loss = NAN};
}

static void begin(struct saver *saver, struct run *run, int64_t step, bool now) {
    struct checkpoint_info info = info_of(run, step);
    assert_int_equal(saver_begin(saver, &info, now), 0);
}

static struct saver_report done(struct saver *saver) {
    struct saver_report report;
    assert_int_equal(saver_poll(saver, true, &report), 0);
    assert_true(report.done);
    return report;
}

/* Whether the checkpoint of `step` has the state of `seed`. */
static bool holds(struct run *run, int64_t step, int seed) {
    struct checkpoint checkpoint;
    fill(run, seed);
    size_t weights = (size_t)run->part.table->total * sizeof(real),
           moments = (size_t)run->part.shards->moments * sizeof(real),
           steps = (size_t)run->part.table->rows * sizeof(int64_t);
    struct state right = {
        .weight = malloc(weights), .moment = {malloc(moments), malloc(moments)}, .steps = malloc(steps)};
    memcpy(right.weight, run->training.state.weight, weights);
    memcpy(right.moment[0], run->training.state.moment[0], moments);
    memcpy(right.moment[1], run->training.state.moment[1], moments);
    memcpy(right.steps, run->training.state.steps, steps);
    fill(run, seed + 50);
    struct checkpoint_content content = run_content(run);
    const char *path = scratch_path("checkpoints/step_%08lld/checkpoint.h5", (long long)step);
    assert_int_equal(checkpoint_open(&run->mesh, path, &checkpoint), 0);
    assert_int_equal(checkpoint_load(&run->mesh, &checkpoint, &content), 0);
    checkpoint_close(&checkpoint);
    bool same = !memcmp(right.steps, run->training.state.steps, steps);
    for (int i = 0; i < run->part.table->rows; i++) {
        const struct row *row = &run->part.table->row[i];
        same &= !memcmp(right.weight + row->offset, run->training.state.weight + row->offset,
                        (size_t)row->count * sizeof(real));
    }
    for (int i = 0; i < run->part.shards->pieces; i++) {
        const struct piece *piece = &run->part.shards->piece[i];
        size_t bytes = (size_t)piece->count * sizeof(real);
        same &=
            !memcmp(right.moment[0] + piece->moment, run->training.state.moment[0] + piece->moment, bytes) &&
            !memcmp(right.moment[1] + piece->moment, run->training.state.moment[1] + piece->moment, bytes);
    }
    free(right.weight);
    free(right.moment[0]);
    free(right.moment[1]);
    free(right.steps);
    return same;
}

static bool there(int64_t step) {
    struct stat about;
    MPI_Barrier(world.world);
    const char *path = scratch_path("checkpoints/step_%08lld/checkpoint.h5", (long long)step);
    return !stat(path, &about);
}

/* In each way of saving; training goes on at once. */
static void saved_as_it_was(void **state) {
    static char *const settings[] = {"checkpoint.files=one", "checkpoint.files=node",
                                     "checkpoint.asynchronous=false"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct run run;
        struct saver_report report;
        start(&run, settings[i]);
        struct saver *saver = saver_of(&run, scratch());
        assert_int_equal(saver_reserved(saver), run.plan.planned.bytes[MEMORY_CHECKPOINT]);
        assert_true((saver_reserved(saver) > 0) == (i < 2));
        assert_int_equal(saver_poll(saver, true, &report), 0);
        assert_false(report.done);
        fill(&run, 1);
        begin(saver, &run, 10 + i, false);
        for (int seed = 90; seed < 95; seed++) fill(&run, seed);
        /* The next one waits: it is not begun before the first is told of. */
        struct checkpoint_info info = info_of(&run, 20 + i);
        assert_int_equal(saver_begin(saver, &info, false), GDN_INTERNAL);
        gdn_failure_clear();
        report = done(saver);
        assert_int_equal(report.status, 0);
        assert_int_equal(report.step, 10 + i);
        assert_true(report.asynchronous == (i < 2));
        assert_true(report.stall_seconds <= report.seconds);
        assert_true(there(10 + i));
        assert_int_equal(saver_poll(saver, true, &report), 0);
        assert_false(report.done); /* once */

        fill(&run, 2);
        begin(saver, &run, 20 + i, true);
        report = done(saver);
        assert_true(!report.status && !report.asynchronous && report.step == 20 + i);
        int64_t elements = 0;
        for (int r = 0; r < run.part.global.rows; r++)
            elements += 3 * run.part.global.row[r].shape[0] * run.part.global.row[r].shape[1];
        assert_int_equal(report.bytes, elements * (int64_t)sizeof(real));

        fill(&run, 3); /* left to saver_free */
        begin(saver, &run, 30 + i, false);
        fill(&run, 4);
        saver_free(saver, false);
        assert_true(holds(&run, 10 + i, 1));
        assert_true(holds(&run, 20 + i, 2));
        assert_true(holds(&run, 30 + i, 3));
        assert_false(holds(&run, 30 + i, 4));
        run_free(&run);
    }
}

/* Changes one bit of what a rank has copied, which nothing but the checksums of the original can tell. */
static void wrong_copy(void **state) {
    (void)state;
    struct run run;
    struct snapshot *snapshot;
    start(&run, NULL);
    fill(&run, 5);
    struct checkpoint_content live = run_content(&run);
    assert_int_equal(snapshot_create(&run.mesh, run.ops, &live, NULL, &snapshot), 0);
    const struct checkpoint_content *copy = snapshot_content(snapshot);
    for (int which = 0; which < 4; which++) {
        assert_int_equal(snapshot_take(snapshot, &live), 0);
        real *const lists[] = {copy->state->weight, copy->state->moment[0], copy->state->moment[1]};
        const struct piece *piece = &run.part.shards->piece[run.part.shards->pieces / 2];
        if (which < 3 && world.rank == world.size - 1)
            ((unsigned char *)&lists[which][piece->moment + piece->count / 2])[0] ^= 4;
        struct checkpoint_info info = info_of(&run, 40 + which);
        int status =
            checkpoint_save(&run.mesh, scratch(), copy, &info, &(struct checkpoint_keep){0}, FILES_ONE);
        assert_int_equal(status, which < 3 ? GDN_INTERNAL : 0);
        if (which < 3) assert_non_null(strstr(gdn_failure(), "does not match its checksum"));
        assert_true(there(40 + which) == (which == 3));
        gdn_failure_clear();
    }
    snapshot_free(snapshot);
    assert_true(holds(&run, 43, 5));
    run_free(&run);
}

/* The folder of checkpoints cannot be made, for one that fails, and then can. */
static void failure(void **state) {
    (void)state;
    struct run run;
    start(&run, NULL);
    fill(&run, 6);
    const char *path = scratch_path("other");
    struct saver *saver = saver_of(&run, path); /* not there yet */
    for (int i = 0; i < 2; i++) {
        begin(saver, &run, 50 + i, i == 1);
        struct saver_report report = done(saver);
        assert_int_equal(report.status, GDN_INTERNAL);
        assert_int_equal(report.step, 50 + i);
        assert_non_null(strstr(report.text, "checkpoints cannot be made: No such file or directory"));
        assert_string_equal(gdn_failure(), "");
    }
    if (world.rank == 0) assert_int_equal(mkdir(path, 0777), 0);
    MPI_Barrier(world.world);
    begin(saver, &run, 52, false);
    assert_int_equal(done(saver).status, 0);
    saver_free(saver, false);
    run_free(&run);
}

/* A rank that asks hears nothing until all are finished, and everybody the same. */
static void asked(void **state) {
    (void)state;
    struct run run;
    struct saver_report report = {0};
    start(&run, NULL);
    fill(&run, 7);
    struct saver *saver = saver_of(&run, scratch());
    begin(saver, &run, 60, false);
    while (!report.done) assert_int_equal(saver_poll(saver, false, &report), 0);
    assert_true(report.step == 60 && !report.status && there(60));
    saver_free(saver, false);
    run_free(&run);
}

static int set_up(void) {
    TRY(world_create());
    if (world.rank == 0) {
        FILE *file = fopen(scratch_path("text"), "w");
        if (!file) return 1;
        for (int i = 0; i < 500; i++) fputs("some words to train on ", file);
        if (fclose(file)) return 1;
    }
    MPI_Barrier(world.world);
    return 0;
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_as_it_was),
        cmocka_unit_test(wrong_copy),
        cmocka_unit_test(failure),
        cmocka_unit_test(asked),
    };
    return run_on_ranks(tests, set_up, world_free);
}
