#include "dist/sync/sync.h"
#include "dist/mesh/mpi_check.h"
#include "dist/comm/parcel.h"
#include "kernels/base/position.h"

#include <stdlib.h>

static const int64_t REAL_BYTES = sizeof(real);

enum phase { IDLE, REDUCING, GATHERING };
enum { GATHERS = 4 /* under way at a time through host memory, which bounds that */ };

struct sync {
    struct mesh *mesh;
    const struct table *table;
    const struct shards *shards;
    MPI_Comm data, pipeline; /* duplicates: what is under way meets no other call */

    /* Buckets. */
    struct parcel *parcel; /* [buckets] */
    enum phase *phase;     /* [buckets] */
    int *slot;             /* [buckets] of scratch, while it is being reduced */
    bool used[SYNC_IN_FLIGHT];
    real *scratch;       /* [SYNC_IN_FLIGHT, largest] every data rank's version of the own part */
    long largest;        /* bucket */
    int under_way;       /* parcels */
    int gather[GATHERS]; /* buckets whose gathers were started last, in turn */
    int gathers;         /* so far */

    /* Partial rows. */
    int reduced;         /* buckets in this step */
    int from;            /* layers from here up were summed in this step */
    int lowest, highest; /* layers of the table */
    real *packed;        /* a layer's partial rows side by side, for one sum */

    real *versions; /* every holder's version of a piece of a shared row */
    struct parcel swap[2 * 64];
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

/* The same of one layer after another, from the lowest up: `at` [ZONES], which begins with zeros, is how far
 * each zone has been looked through. */
static long next_partial_count(const struct table *table, int layer, bool shared, int at[ZONES]) {
    long count = 0;
    for (int zone = 0; zone < ZONES; zone++) {
        if ((zone == ZONE_SHARED_LARGE || zone == ZONE_SHARED_SMALL) != shared) continue;
        for (; at[zone] < table->rows; at[zone]++) {
            const struct row *row = &table->row[at[zone]];
            if ((int)row->zone != zone || row->layer < layer) continue;
            if (row->layer > layer) break;
            if (row->partial) count += row->count;
        }
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
    int lowest, highest, at[ZONES] = {0};
    long longest = 0;
    find_layers(table, &lowest, &highest);
    for (int layer = lowest; layer <= highest; layer++)
        for (int shared = 0; shared < 2; shared++) {
            long count = next_partial_count(table, layer, shared, at);
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
    int lowest, highest, at[ZONES] = {0};
    int64_t bytes = 0;
    find_layers(table, &lowest, &highest);
    for (int layer = lowest; layer <= highest; layer++)
        for (int shared = 0; shared < 2; shared++)
            bytes += axis_formula_sum(tensor, index, next_partial_count(table, layer, shared, at));
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

/* Reserves elements on the device. */
static real *reserve_elements(const struct sync *sync, long count) {
    return sync->mesh->data.ops->device->reserve(((size_t)count + 1) * sizeof(real));
}

static int reserve(struct sync *sync) {
    struct mesh *mesh = sync->mesh;
    size_t buckets = (size_t)sync->shards->buckets + 1;
    long partial = mesh->tensor.size > 1 ? sync_longest_partial(sync->table) : 0;
    sync->largest = mesh->data.size > 1 ? longest_bucket(sync->shards) : 0;
    sync->parcel = calloc(buckets, sizeof *sync->parcel);
    sync->phase = calloc(buckets, sizeof *sync->phase);
    sync->slot = calloc(buckets, sizeof *sync->slot);
    sync->scratch = reserve_elements(sync, SYNC_IN_FLIGHT * sync->largest);
    sync->packed = reserve_elements(sync, partial);
    sync->versions = reserve_elements(sync, longest_versions(sync->table));
    if (!sync->parcel || !sync->phase || !sync->slot || !sync->scratch || !sync->packed || !sync->versions)
        return gdn_fail(GDN_INTERNAL,
                        "out of memory: buffers for sums of gradient buckets of %ld elements cannot be had; "
                        "a smaller mesh.bucket needs less",
                        sync->largest);
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
    const struct device *device = sync->mesh->data.ops->device;
    free(sync->parcel);
    free(sync->phase);
    free(sync->slot);
    if (sync->scratch) device->release(sync->scratch);
    if (sync->packed) device->release(sync->packed);
    if (sync->versions) device->release(sync->versions);
    free(sync);
}

/* ------------------------------------------------------------------------------- partial and shared rows */

/* Sums a layer's partial rows over the tensor axis. */
static void sum_partial(struct sync *sync, int layer, bool shared, real *gradient) {
    const struct table *table = sync->table;
    const struct ops *ops = sync->mesh->tensor.ops;
    long count = partial_count(table, layer, shared);
    if (!count) return;
    for (int unpack = 0; unpack < 2; unpack++) {
        real *at = sync->packed;
        for (int i = 0; i < table->rows; i++) {
            const struct row *row = &table->row[i];
            if (!row->partial || row->layer != layer || is_shared(row) != shared) continue;
            real *own = gradient + row->offset;
            ops->copy(row->count, unpack ? at : own, unpack ? own : at);
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

/* Sends x [count] to another holder and receives its version. */
static int swap(struct sync *sync, int rank, real *x, real *version, long count, struct parcel *parcel) {
    struct axis *axis = &sync->mesh->pipeline;
    if (axis->wire) {
        const struct wires *wires = axis->ops->device->wires;
        wires->send(axis->wire, x, (size_t)count * sizeof *x, rank);
        wires->receive(axis->wire, version, (size_t)count * sizeof *x, rank);
        return 0;
    }
    TRY(parcel_receive(&parcel[0], axis, sync->pipeline, version, count, rank, 0, false));
    return parcel_send(&parcel[1], axis, sync->pipeline, x, count, rank, 0, false);
}

/* Sums x [count] of a row's holders, whose versions are exchanged with each. */
static int sum_versions(struct sync *sync, uint64_t stages, real *x, long count) {
    struct axis *axis = &sync->mesh->pipeline;
    const struct wires *wires = axis->ops->device->wires;
    int holders = 0, parcels = 0;
    if (axis->wire) wires->begin(axis->wire, "a sum of shared gradients");
    for (int rank = 0; rank < axis->size; rank++) {
        if (!(stages >> rank & 1)) continue;
        real *version = sync->versions + holders++ * count;
        if (rank == axis->index) {
            axis->ops->copy(count, x, version);
            continue;
        }
        TRY(swap(sync, rank, x, version, count, sync->swap + parcels));
        if (!axis->wire) parcels += 2;
        axis->bytes += count * REAL_BYTES;
    }
    if (axis->wire) wires->join(axis->wire, wires->end(axis->wire));
    for (int i = 0; i < parcels; i++) TRY(parcel_end(&sync->swap[i]));
    axis->ops->add_parts(count, holders, sync->versions, x);
    return axis->ops->device->status();
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
        position_enter(pipeline->name, "sum of shared gradients", -1, -1);
        int status = share_rows(sync, gradient);
        position_leave();
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
    position_enter(data->name, sync->phase[bucket] == REDUCING ? "sum of gradients" : "gather of weights",
                   sync->shards->bucket[bucket].count, -1);
    int status = parcel_end(&sync->parcel[bucket]);
    position_leave();
    data->seconds += MPI_Wtime();
    sync->under_way--;
    sync->phase[bucket] = IDLE;
    return status ? status : data->ops->device->status();
}

/* Counts what was handed over, `part` elements to each of the others. */
static int started(struct sync *sync, int bucket, enum phase phase, long part, double began, int status) {
    struct axis *data = &sync->mesh->data;
    data->seconds += MPI_Wtime() - began;
    data->bytes += (data->size - 1) * part * REAL_BYTES;
    sync->phase[bucket] = phase;
    sync->under_way++;
    return status;
}

/* Through host memory: waits, where GATHERS are under way, until the first of them is through MPI. */
static int make_room(struct sync *sync, int bucket) {
    int *place = &sync->gather[sync->gathers++ % GATHERS];
    int before = *place;
    *place = bucket;
    if (!sync->mesh->staging || sync->gathers <= GATHERS || sync->phase[before] != GATHERING) return 0;
    return parcel_await(&sync->parcel[before]);
}

/* Starts to send every rank's part of x [count] to all, in place. */
static int start_gather(struct sync *sync, int bucket, real *x, long part) {
    struct axis *data = &sync->mesh->data;
    double began = MPI_Wtime();
    position_enter(data->name, "gather of weights", part * data->size, -1);
    int status = make_room(sync, bucket);
    position_leave();
    if (!status) status = parcel_gather(&sync->parcel[bucket], data, sync->data, x, part);
    return started(sync, bucket, GATHERING, part, began, status);
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
    int status = parcel_exchange(&sync->parcel[bucket], &sync->mesh->data, sync->data, gradient + b->first,
                                 sync->scratch + slot * sync->largest, part);
    return started(sync, bucket, REDUCING, part, began, status);
}

int sync_finish(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    struct axis *data = &sync->mesh->data;
    if (data->size == 1) return 0;
    if (sync->phase[bucket] != REDUCING) return wrong_phase("the end of a reduction", bucket);
    TRY(wait_for(sync, bucket));
    int slot = sync->slot[bucket];
    long part = b->count / data->size;
    data->ops->add_parts(part, data->size, sync->scratch + slot * sync->largest,
                         gradient + b->first + data->index * part);
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
    for (int b = 0; sync->under_way && b < sync->shards->buckets; b++)
        if (sync->phase[b] != IDLE) TRY(parcel_move(&sync->parcel[b]));
    return 0;
}
