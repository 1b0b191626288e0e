#include "dist/sync.h"
#include "dist/mpi_check.h"

#include <stdlib.h>
#include <string.h>

static const int64_t REAL_BYTES = sizeof(real);

enum phase { IDLE, REDUCING, GATHERING };

struct sync {
    struct mesh *mesh;
    const struct table *table;
    const struct shards *shards;
    MPI_Comm data, pipeline; /* duplicates: what is under way meets no other call */

    /* Buckets. */
    MPI_Request *request; /* [buckets] */
    enum phase *phase;    /* [buckets] */
    int *slot;            /* [buckets] of scratch, while it is being reduced */
    bool used[SYNC_IN_FLIGHT];
    real *scratch; /* [SYNC_IN_FLIGHT, largest] every data rank's version of the own part */
    long largest;  /* bucket */
    int under_way; /* requests */

    /* Partial rows. */
    int reduced;         /* buckets in this step */
    int from;            /* layers from here up were summed in this step */
    int lowest, highest; /* layers of the table */
    real *packed;        /* a layer's partial rows side by side, for one sum */

    real *versions; /* every holder's version of a piece of a shared row */
};

static bool is_shared(const struct row *row) {
    return row->zone == ZONE_SHARED_LARGE || row->zone == ZONE_SHARED_SMALL;
}

/* --------------------------------------------------------------------------------- sizes and formulas */

/* Elements of a layer's partial rows, of those in shared zones or of the others. */
static long partial_count(const struct table *table, int layer, bool shared) {
    long count = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (row->partial && row->layer == layer && is_shared(row) == shared) count += row->count;
    }
    return count;
}

static void find_layers(const struct table *table, int *lowest, int *highest) {
    *lowest = *highest = table->rows ? table->row[0].layer : 0;
    for (int i = 1; i < table->rows; i++) {
        int layer = table->row[i].layer;
        if (layer < *lowest) *lowest = layer;
        if (layer > *highest) *highest = layer;
    }
}

/* Elements of a shared row that are exchanged in one go: the same on all of its holders. */
static long shared_piece(const struct row *row) {
    long most = AXIS_BLOCK / __builtin_popcountll(row->stages);
    return row->count < most ? row->count : most;
}

static long longest_bucket(const struct shards *shards) {
    long longest = 0;
    for (int b = 0; b < shards->buckets; b++)
        if (shards->bucket[b].count > longest) longest = shards->bucket[b].count;
    return longest;
}

long sync_longest_partial(const struct table *table) {
    int lowest, highest;
    long longest = 0;
    find_layers(table, &lowest, &highest);
    for (int layer = lowest; layer <= highest; layer++)
        for (int shared = 0; shared < 2; shared++) {
            long count = partial_count(table, layer, shared);
            if (count > longest) longest = count;
        }
    return longest;
}

static long longest_versions(const struct table *table) {
    long longest = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (!is_shared(row)) continue;
        long count = shared_piece(row) * __builtin_popcountll(row->stages);
        if (count > longest) longest = count;
    }
    return longest;
}

int64_t sync_formula_bucket(const struct bucket *bucket, int data, int index) {
    return axis_formula_sum(data, index, bucket->count); /* whether sums or updated weights are gathered */
}

int64_t sync_formula_partial(const struct table *table, int tensor, int index) {
    int lowest, highest;
    int64_t bytes = 0;
    find_layers(table, &lowest, &highest);
    for (int layer = lowest; layer <= highest; layer++)
        for (int shared = 0; shared < 2; shared++)
            bytes += axis_formula_sum(tensor, index, partial_count(table, layer, shared));
    return bytes;
}

int64_t sync_formula_shared(const struct table *table, int pipeline_index) {
    int64_t bytes = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (is_shared(row) && row->stages >> pipeline_index & 1)
            bytes += (__builtin_popcountll(row->stages) - 1) * row->count * REAL_BYTES;
    }
    return bytes;
}

int64_t sync_formula_scratch(const struct table *table, const struct shards *shards, int data, int tensor) {
    int64_t count = longest_versions(table);
    if (data > 1) count += SYNC_IN_FLIGHT * longest_bucket(shards);
    if (tensor > 1) count += sync_longest_partial(table);
    return count * REAL_BYTES;
}

/* ------------------------------------------------------------------------------------------- creation */

static int duplicate(const struct axis *axis, MPI_Comm *out) {
    if (axis->size == 1) return 0;
    MPI_TRY(MPI_Comm_dup(axis->comm, out));
    MPI_TRY(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN));
    return 0;
}

static int reserve(struct sync *sync) {
    struct mesh *mesh = sync->mesh;
    size_t buckets = (size_t)sync->shards->buckets + 1, size = sizeof(real);
    long partial = mesh->tensor.size > 1 ? sync_longest_partial(sync->table) : 0;
    sync->largest = mesh->data.size > 1 ? longest_bucket(sync->shards) : 0;
    sync->request = malloc(buckets * sizeof *sync->request);
    sync->phase = calloc(buckets, sizeof *sync->phase);
    sync->slot = calloc(buckets, sizeof *sync->slot);
    sync->scratch = malloc((SYNC_IN_FLIGHT * (size_t)sync->largest + 1) * size);
    sync->packed = malloc(((size_t)partial + 1) * size);
    sync->versions = malloc(((size_t)longest_versions(sync->table) + 1) * size);
    if (!sync->request || !sync->phase || !sync->slot || !sync->scratch || !sync->packed || !sync->versions)
        return gdn_fail(GDN_INTERNAL,
                        "out of memory: buffers for sums of gradient buckets of %ld elements cannot be had; "
                        "a smaller mesh.bucket needs less",
                        sync->largest);
    for (size_t b = 0; b < buckets; b++) sync->request[b] = MPI_REQUEST_NULL;
    return axis_reserve(&mesh->tensor, partial);
}

int sync_create(struct mesh *mesh, const struct table *table, const struct shards *shards, struct sync **out,
                int64_t *bytes) {
    /* First what needs the other ranks, so that none waits for one that has no memory. */
    MPI_Comm data = MPI_COMM_NULL, pipeline = MPI_COMM_NULL;
    TRY(duplicate(&mesh->data, &data));
    TRY(duplicate(&mesh->pipeline, &pipeline));
    struct sync *sync = *out = calloc(1, sizeof *sync);
    if (!sync) return gdn_fail(GDN_INTERNAL, "out of memory for the gradient sums");
    *sync = (struct sync){.mesh = mesh, .table = table, .shards = shards, .data = data, .pipeline = pipeline};
    find_layers(table, &sync->lowest, &sync->highest);
    sync->from = sync->highest + 1;
    int status = reserve(sync);
    if (bytes) *bytes = sync_formula_scratch(table, shards, mesh->data.size, mesh->tensor.size);
    if (!status) return 0;
    sync_free(sync);
    *out = NULL;
    return status;
}

void sync_free(struct sync *sync) {
    if (!sync) return;
    if (sync->data != MPI_COMM_NULL) MPI_Comm_free(&sync->data);
    if (sync->pipeline != MPI_COMM_NULL) MPI_Comm_free(&sync->pipeline);
    free(sync->request);
    free(sync->phase);
    free(sync->slot);
    free(sync->scratch);
    free(sync->packed);
    free(sync->versions);
    free(sync);
}

/* ------------------------------------------------------------------------------- partial and shared rows */

/* Sums a layer's partial rows over the tensor axis. */
static void sum_partial(struct sync *sync, int layer, bool shared, real *gradient) {
    const struct table *table = sync->table;
    long count = partial_count(table, layer, shared);
    if (!count) return;
    for (int unpack = 0; unpack < 2; unpack++) {
        real *at = sync->packed;
        for (int i = 0; i < table->rows; i++) {
            const struct row *row = &table->row[i];
            if (!row->partial || row->layer != layer || is_shared(row) != shared) continue;
            real *own = gradient + row->offset;
            memcpy(unpack ? own : at, unpack ? at : own, (size_t)row->count * sizeof *at);
            at += row->count;
        }
        if (!unpack) axis_sum(&sync->mesh->tensor, sync->packed, count);
    }
}

int sync_partial(struct sync *sync, int layer, real *gradient) {
    if (sync->mesh->tensor.size == 1) return 0;
    int down_to = layer > sync->lowest ? layer : sync->lowest;
    while (sync->from > down_to) sum_partial(sync, --sync->from, false, gradient);
    return sync->mesh->tensor.status;
}

/* Sums x [count] of a row's holders, whose versions are exchanged with each. */
static int sum_versions(struct sync *sync, uint64_t stages, real *x, long count) {
    struct axis *axis = &sync->mesh->pipeline;
    MPI_Request request[2 * 64];
    int holders = 0, requests = 0;
    for (int rank = 0; rank < axis->size; rank++) {
        if (!(stages >> rank & 1)) continue;
        real *version = sync->versions + holders++ * count;
        if (rank == axis->index) {
            memcpy(version, x, (size_t)count * sizeof *x);
            continue;
        }
        MPI_TRY(MPI_Irecv(version, (int)count, REAL_TYPE, rank, 0, sync->pipeline, &request[requests++]));
        MPI_TRY(MPI_Isend(x, (int)count, REAL_TYPE, rank, 0, sync->pipeline, &request[requests++]));
        axis->bytes += count * REAL_BYTES;
    }
    MPI_TRY(MPI_Waitall(requests, request, MPI_STATUSES_IGNORE));
    axis_add_parts(x, sync->versions, holders, count);
    return 0;
}

static int share_rows(struct sync *sync, real *gradient) {
    for (int i = 0; i < sync->table->rows; i++) {
        const struct row *row = &sync->table->row[i];
        if (!is_shared(row)) continue;
        long piece = shared_piece(row);
        for (long at = 0; at < row->count; at += piece) {
            long n = row->count - at < piece ? row->count - at : piece;
            TRY(sum_versions(sync, row->stages, gradient + row->offset + at, n));
        }
    }
    return 0;
}

int sync_share(struct sync *sync, real *gradient) {
    struct axis *pipeline = &sync->mesh->pipeline;
    if (pipeline->size > 1) {
        pipeline->seconds -= MPI_Wtime();
        int status = share_rows(sync, gradient);
        pipeline->seconds += MPI_Wtime();
        TRY(status);
    }
    if (sync->mesh->tensor.size > 1)
        for (int layer = sync->highest; layer >= sync->lowest; layer--)
            sum_partial(sync, layer, true, gradient);
    return sync->mesh->tensor.status;
}

/* -------------------------------------------------------------------------------------------- buckets */

static int wrong_phase(const char *call, int bucket) {
    return gdn_fail(GDN_INTERNAL, "%s of gradient bucket %d at the wrong time", call, bucket);
}

static int wait_for(struct sync *sync, int bucket) {
    struct axis *data = &sync->mesh->data;
    data->seconds -= MPI_Wtime();
    int code = MPI_Wait(&sync->request[bucket], MPI_STATUS_IGNORE);
    data->seconds += MPI_Wtime();
    sync->under_way--;
    sync->phase[bucket] = IDLE;
    return code == MPI_SUCCESS ? 0 : mpi_failed(code, "MPI_Wait for a gradient bucket");
}

/* Counts what was handed over, `part` elements to each of the others. */
static int started(struct sync *sync, int bucket, enum phase phase, long part, double began, int code) {
    struct axis *data = &sync->mesh->data;
    data->seconds += MPI_Wtime() - began;
    data->bytes += (data->size - 1) * part * REAL_BYTES;
    sync->phase[bucket] = phase;
    sync->under_way++;
    return code == MPI_SUCCESS ? 0 : mpi_failed(code, "the sum or gather of a gradient bucket");
}

/* Starts to send every rank's part of x [count] to all, in place. */
static int start_gather(struct sync *sync, int bucket, real *x, long part) {
    double began = MPI_Wtime();
    int code = MPI_Iallgather(MPI_IN_PLACE, 0, REAL_TYPE, x, (int)part, REAL_TYPE, sync->data,
                              &sync->request[bucket]);
    return started(sync, bucket, GATHERING, part, began, code);
}

int sync_reduce(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    int ranks = sync->mesh->data.size, slot = 0;
    if (!b->shared) TRY(sync_partial(sync, b->ready, gradient));
    if (++sync->reduced == sync->shards->buckets) { /* what comes next is another step */
        sync->reduced = 0;
        sync->from = sync->highest + 1;
    }
    if (ranks == 1) return 0;
    if (sync->phase[bucket] != IDLE) return wrong_phase("reduction", bucket);
    while (slot < SYNC_IN_FLIGHT && sync->used[slot]) slot++;
    if (slot == SYNC_IN_FLIGHT)
        return gdn_fail(GDN_INTERNAL, "gradient bucket %d would be one more than the %d in flight", bucket,
                        SYNC_IN_FLIGHT);
    sync->used[sync->slot[bucket] = slot] = true;
    long part = b->count / ranks;
    double began = MPI_Wtime();
    int code = MPI_Ialltoall(gradient + b->first, (int)part, REAL_TYPE, sync->scratch + slot * sync->largest,
                             (int)part, REAL_TYPE, sync->data, &sync->request[bucket]);
    return started(sync, bucket, REDUCING, part, began, code);
}

int sync_finish(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    struct axis *data = &sync->mesh->data;
    if (data->size == 1) return 0;
    if (sync->phase[bucket] != REDUCING) return wrong_phase("the end of a reduction", bucket);
    TRY(wait_for(sync, bucket));
    int slot = sync->slot[bucket];
    long part = b->count / data->size;
    axis_add_parts(gradient + b->first + data->index * part, sync->scratch + slot * sync->largest, data->size,
                   part);
    sync->used[slot] = false;
    if (b->sharded) return 0;
    TRY(start_gather(sync, bucket, gradient + b->first, part));
    return wait_for(sync, bucket);
}

int sync_gather(struct sync *sync, int bucket, real *weight) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    if (sync->mesh->data.size == 1 || !b->sharded) return 0;
    if (sync->phase[bucket] != IDLE) return wrong_phase("the gather", bucket);
    return start_gather(sync, bucket, weight + b->first, b->own_count);
}

int sync_gathered(struct sync *sync, int bucket) {
    if (sync->mesh->data.size == 1 || !sync->shards->bucket[bucket].sharded) return 0;
    if (sync->phase[bucket] != GATHERING) return wrong_phase("the end of a gather", bucket);
    return wait_for(sync, bucket);
}

int sync_progress(struct sync *sync) {
    int all;
    if (sync->under_way)
        MPI_TRY(MPI_Testall(sync->shards->buckets, sync->request, &all, MPI_STATUSES_IGNORE));
    return 0;
}
