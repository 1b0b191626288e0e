/* Speed of saving and loading checkpoints: bench_checkpoint [MB [ranks of a node]], under mpirun, writes to
 * $TMPDIR. Weights and moments of square matrices, sharded over data. The numbers in
 * dist/checkpoint/checkpoint.h come from here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/checkpoint/snapshot.h"
#include "kernels/backends/backends.h"
#include "tests/dist/checkpoint/sample.h"
#include "tests/support/scratch.h"
#include "tests/support/world.h"

enum { SIDE = 1024 };
static const struct moments moments = {2, {"exp_avg", "exp_avg_sq"}};

static void make_table(long tensors, struct table *out) {
    *out = (struct table){.rows = (int)tensors, .row = calloc((size_t)tensors, sizeof(struct row))};
    for (int i = 0; i < out->rows; i++) {
        struct row *row = &out->row[i];
        *row = (struct row){.ndim = 2, .shape = {SIDE, SIDE}, .local = {SIDE, SIDE}, .counted = true};
        row->transposed = i % 8 == 7; /* as in a model */
        row->count = (long)SIDE * SIDE;
        row->treatment.moments = &moments;
        row->offset = out->total;
        out->total += row->count;
        snprintf(row->name, sizeof row->name, "layers.%d.weight", i);
    }
    long grain = (long)world.axis[AXIS_DATA].size * SHARD_GRAIN;
    out->total = (out->total + grain - 1) / grain * grain;
    for (int z = ZONE_LARGE + 1; z <= ZONES; z++) out->zone[z] = out->total;
}

static real *random_memory(long count) {
    real *memory = malloc((size_t)count * sizeof *memory);
    for (long i = 0; i < count; i++) memory[i] = (real)(i * 2654435761u % 1000003) / 1000003;
    return memory;
}

static double seconds_since(double *before) {
    MPI_Barrier(world.world);
    double now = MPI_Wtime(), seconds = now - *before;
    *before = now;
    return seconds;
}

static int measure(const struct checkpoint_content *content, double mb, int files) {
    static const char *const names[] = {"one file", "one a node"};
    struct checkpoint_info info = sample_info(5 + files, 1, 1);
    struct checkpoint checkpoint;
    double before = MPI_Wtime();
    seconds_since(&before);
    TRY(checkpoint_save(&world, scratch(), content, &info, &(struct checkpoint_keep){0},
                        (enum checkpoint_files)files));
    double save = seconds_since(&before);
    const char *path = format("%s/checkpoints/step_%08d/checkpoint.h5", scratch(), 5 + files);
    TRY(checkpoint_open(&world, path, &checkpoint));
    double open = seconds_since(&before);
    TRY(checkpoint_load(&world, &checkpoint, content));
    double load = seconds_since(&before);
    checkpoint_close(&checkpoint);
    if (world.rank == 0)
        printf("%2d ranks, %-10s: save %6.2f s (%5.0f MB/s), open %5.2f s (%5.0f MB/s), load %5.2f s (%5.0f "
               "MB/s)\n",
               world.size, names[files], save, mb / save, open, mb / open, load, mb / load);
    return 0;
}

/* What training waits for where checkpoints are written in the background: the copy, with the checksums; and
 * what a copy alone takes. The better of several. */
static int measure_snapshot(const struct checkpoint_content *content, double mb) {
    const struct ops *ops = ops_find("cpu");
    struct snapshot *snapshot;
    double copy = INFINITY, both = INFINITY;
    const long count = content->shards->moments, piece = 1 << 18;
    real *other = random_memory(3 * count);
    const real *from[] = {content->state->weight, content->state->moment[0], content->state->moment[1]};
    TRY(snapshot_create(&world, ops, content, NULL, &snapshot));
    for (int i = 0; i < 9; i++) {
        double before = MPI_Wtime();
        seconds_since(&before);
        TRY(snapshot_take(snapshot, content));
        both = fmin(both, seconds_since(&before));
#pragma omp parallel for schedule(static)
        for (long at = 0; at < 3 * count; at += piece) {
            long n = count - at % count < piece ? count - at % count : piece;
            memcpy(other + at, from[at / count] + at % count, (size_t)n * sizeof(real));
        }
        copy = fmin(copy, seconds_since(&before));
    }
    if (world.rank == 0)
        printf("%2d ranks of %d threads, copy with checksums: %6.4f s (%5.0f MB/s), copy alone %6.4f s "
               "(%5.0f MB/s)\n",
               world.size, ops_threads(), both, mb / both, copy, mb / copy);
    snapshot_free(snapshot);
    free(other);
    return 0;
}

static int measure_all(double mb, int node_ranks) {
    struct table table;
    struct shards shards;
    make_table((long)(mb * 1e6 / 3 / sizeof(real) / SIDE / SIDE + 0.5), &table);
    TRY(shards_create(&table, world.axis[AXIS_DATA].size, world.axis[AXIS_DATA].index, 1, 4 << 20, &shards));
    struct state state = {.weight = random_memory(table.total),
                          .moment[0] = random_memory(shards.moments),
                          .moment[1] = random_memory(shards.moments),
                          .steps = calloc((size_t)table.rows, sizeof(int64_t))};
    struct table global = table;
    struct checkpoint_content content = {
        .global = &global, .table = &table, .shards = &shards, .state = &state};
    snprintf(world.host, sizeof world.host, "node%d", world.rank / node_ranks);
    double all = table.rows * 3.0 * SIDE * SIDE * sizeof(real) / 1e6;
    int status = measure_snapshot(&content, all);
    for (int i = 0; i < 4 && !status; i++) status = measure(&content, all, i % 2);
    return status;
}

int rank_main(void) {
    const char *mb = test_argument(1), *node_ranks = test_argument(2);
    TRY(world_create());
    int status = measure_all(mb ? atof(mb) : 200, node_ranks ? atoi(node_ranks) : 2);
    if (status && world.rank == 0) fprintf(stderr, "%s\n", gdn_failure());
    world_free();
    return status;
}
