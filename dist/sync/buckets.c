/* Buckets of the gradient over all copies: a sum begins, and ends, while other work goes on in between. */
#include "dist/sync/private.h"

#include "dist/mpi/activity.h"

static int wrong_phase(const char *call, int bucket) {
    return gdn_fail(GDN_INTERNAL, "%s of gradient bucket %d at the wrong time", call, bucket);
}

static int wait_for(struct sync *sync, int bucket) {
    struct axis *copies = &sync->mesh->axis[AXIS_COPIES];
    copies->seconds -= MPI_Wtime();
    activity_enter(copies->name, sync->phase[bucket] == REDUCING ? "sum of gradients" : "gather of weights",
                   sync->shards->bucket[bucket].count, -1);
    int status = async_op_end(&sync->op[bucket]);
    activity_leave();
    copies->seconds += MPI_Wtime();
    sync->under_way--;
    sync->phase[bucket] = IDLE;
    return status ? status : copies->ops->device->status();
}

/* Counts what was handed over, `part` elements to each of the others. */
static int started(struct sync *sync, int bucket, enum phase phase, long part, double began, int status) {
    struct axis *copies = &sync->mesh->axis[AXIS_COPIES];
    copies->seconds += MPI_Wtime() - began;
    copies->bytes += (copies->size - 1) * part * REAL_BYTES;
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
    return async_op_await(&sync->op[before]);
}

/* Starts to send every rank's part of x [count] to all, in place. */
static int start_gather(struct sync *sync, int bucket, real *x, long part) {
    struct axis *copies = &sync->mesh->axis[AXIS_COPIES];
    double began = MPI_Wtime();
    activity_enter(copies->name, "gather of weights", part * copies->size, -1);
    int status = make_room(sync, bucket);
    activity_leave();
    if (!status) status = async_op_gather(&sync->op[bucket], copies, sync->copies, x, part);
    return started(sync, bucket, GATHERING, part, began, status);
}

int sync_reduce(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    int ranks = sync->mesh->axis[AXIS_COPIES].size, place = 0;
    if (!b->shared) TRY(sync_partial(sync, b->ready, gradient));
    if (++sync->reduced == sync->shards->buckets) { /* what comes next is another step */
        sync->reduced = 0;
        sync->from = sync->highest + 1;
    }
    if (ranks == 1) return 0;
    if (sync->phase[bucket] != IDLE) return wrong_phase("reduction", bucket);
    while (place < SYNC_IN_FLIGHT && sync->used[place]) place++;
    if (place == SYNC_IN_FLIGHT)
        return gdn_fail(GDN_INTERNAL, "gradient bucket %d would be one more than the %d in flight", bucket,
                        SYNC_IN_FLIGHT);
    sync->used[sync->place[bucket] = place] = true;
    long part = b->count / ranks;
    double began = MPI_Wtime();
    int status = async_op_exchange(&sync->op[bucket], &sync->mesh->axis[AXIS_COPIES], sync->copies,
                                   gradient + b->first, sync->scratch + place * sync->largest, part);
    return started(sync, bucket, REDUCING, part, began, status);
}

int sync_finish(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    struct axis *copies = &sync->mesh->axis[AXIS_COPIES];
    if (copies->size == 1) return 0;
    if (sync->phase[bucket] != REDUCING) return wrong_phase("the end of a reduction", bucket);
    TRY(wait_for(sync, bucket));
    int place = sync->place[bucket];
    long part = b->count / copies->size;
    copies->ops->add_parts(part, copies->size, sync->scratch + place * sync->largest,
                           gradient + b->first + copies->index * part);
    sync->used[place] = false;
    if (b->sharded) return 0;
    TRY(start_gather(sync, bucket, gradient + b->first, part));
    return wait_for(sync, bucket);
}

int sync_gather(struct sync *sync, int bucket, real *weight) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    if (sync->mesh->axis[AXIS_COPIES].size == 1 || !b->sharded) return 0;
    if (sync->phase[bucket] != IDLE) return wrong_phase("the gather", bucket);
    return start_gather(sync, bucket, weight + b->first, b->own_count);
}

int sync_gathered(struct sync *sync, int bucket) {
    if (sync->mesh->axis[AXIS_COPIES].size == 1 || !sync->shards->bucket[bucket].sharded) return 0;
    if (sync->phase[bucket] != GATHERING) return wrong_phase("the end of a gather", bucket);
    return wait_for(sync, bucket);
}

int sync_progress(struct sync *sync) {
    for (int b = 0; sync->under_way && b < sync->shards->buckets; b++)
        if (sync->phase[b] != IDLE) TRY(async_op_move(&sync->op[b]));
    return 0;
}
