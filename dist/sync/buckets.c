/* Buckets of the gradient over all copies: a sum begins, and ends, while other work goes on in between.
 *
 * Of C copies in G groups of g, parts of a bucket being numbered by the member of a group that owns them, then by the
 * group (shards_part), a sum goes in two legs. Within a group each member gets from the others what they have of its G
 * parts, and adds it up; across groups it hands each of these to its owner there, who adds what the groups have. Of
 * what a rank hands over, (C − 1)/C of the bucket either way, 1/g as much goes across. A gather goes the other way
 * round. At most one bucket is in its first leg: it goes on to the second before another begins, on all ranks at the
 * same place of their lists, or sooner where MPI alone is asked and all has come. */
#include "dist/sync/private.h"

#include "dist/mpi/activity.h"

static int wrong_phase(const char *call, int bucket) {
    return gdn_fail(GDN_INTERNAL, "%s of gradient bucket %d at the wrong time", call, bucket);
}

static struct axis *copies_of(const struct sync *sync) {
    return &sync->mesh->axis[AXIS_COPIES];
}

/* Elements of a bucket that each rank of a leg gets, or gives. */
static long part_of_leg(const struct sync *sync, int bucket, enum leg leg) {
    const long of_member = sync->shards->bucket[bucket].count / sync->leg[WITHIN].size;
    return leg == WITHIN ? of_member : of_member / sync->leg[ACROSS].size;
}

/* Where the parts of a leg begin in the bucket. */
static real *parts_of_leg(const struct sync *sync, int bucket, enum leg leg) {
    const struct async_ranks *within = &sync->leg[WITHIN];
    return sync->bucket[bucket].x + (leg == WITHIN ? 0 : within->index * part_of_leg(sync, bucket, WITHIN));
}

static enum leg last_leg(enum phase phase) {
    return phase == REDUCING ? ACROSS : WITHIN;
}

static const char *name_of(enum phase phase) {
    return phase == REDUCING ? "sum of gradients" : "gather of weights";
}

/* Starts a leg, and counts what is handed over. */
static int start_leg(struct sync *sync, int bucket, enum leg leg) {
    struct exchanged *b = &sync->bucket[bucket];
    const struct async_ranks *ranks = &sync->leg[leg];
    const long part = part_of_leg(sync, bucket, leg);
    struct axis *copies = copies_of(sync);
    real *parts = parts_of_leg(sync, bucket, leg), *scratch = sync->scratch + b->place * sync->largest;
    if (ranks->size == 1) return 0;
    double began = MPI_Wtime();
    int status = b->phase == REDUCING ? async_op_exchange(&b->op, copies, ranks, parts, scratch, part)
                                      : async_op_gather(&b->op, copies, ranks, parts, part);
    copies->seconds += MPI_Wtime() - began;
    copies->bytes += (ranks->size - 1) * part * REAL_BYTES;
    return status;
}

/* Ends a leg: of a sum, what has come is added up where the next one takes it from. */
static int end_leg(struct sync *sync, int bucket, enum leg leg) {
    struct exchanged *b = &sync->bucket[bucket];
    const struct async_ranks *ranks = &sync->leg[leg];
    const long part = part_of_leg(sync, bucket, leg);
    struct axis *copies = copies_of(sync);
    if (ranks->size == 1) return 0;
    copies->seconds -= MPI_Wtime();
    activity_enter(copies->name, name_of(b->phase), sync->shards->bucket[bucket].count, -1);
    int status = async_op_end(&b->op);
    activity_leave();
    copies->seconds += MPI_Wtime();
    if (!status && b->phase == REDUCING)
        copies->ops->add_parts(part, ranks->size, sync->scratch + b->place * sync->largest,
                               parts_of_leg(sync, bucket, leg) + ranks->index * part);
    return status ? status : copies->ops->device->status();
}

/* The bucket that is in its first leg goes on to its last. */
static int go_on(struct sync *sync) {
    const int bucket = sync->first;
    if (bucket < 0) return 0;
    const enum leg last = last_leg(sync->bucket[bucket].phase);
    sync->first = -1;
    TRY(end_leg(sync, bucket, 1 - last));
    return start_leg(sync, bucket, last);
}

static int begin(struct sync *sync, int bucket, enum phase phase, real *x) {
    struct exchanged *b = &sync->bucket[bucket];
    const enum leg last = last_leg(phase);
    TRY(go_on(sync));
    b->phase = phase;
    b->x = x;
    sync->under_way++;
    if (sync->leg[1 - last].size == 1) return start_leg(sync, bucket, last);
    sync->first = bucket;
    return start_leg(sync, bucket, 1 - last);
}

static int end(struct sync *sync, int bucket) {
    if (sync->first == bucket) TRY(go_on(sync));
    struct exchanged *b = &sync->bucket[bucket];
    int status = end_leg(sync, bucket, last_leg(b->phase));
    b->phase = IDLE;
    sync->under_way--;
    return status;
}

/* Through host memory: waits, where GATHERS are under way, until the first of them is through MPI. */
static int make_room(struct sync *sync, int bucket) {
    int *place = &sync->gather[sync->gathers++ % GATHERS];
    int before = *place;
    *place = bucket;
    if (!sync->mesh->staging || sync->gathers <= GATHERS || sync->bucket[before].phase != GATHERING) return 0;
    return async_op_await(&sync->bucket[before].op);
}

/* Starts to send every rank's part of x [count] to all, in place. */
static int start_gather(struct sync *sync, int bucket, real *x) {
    struct axis *copies = copies_of(sync);
    double began = MPI_Wtime();
    activity_enter(copies->name, name_of(GATHERING), sync->shards->bucket[bucket].count, -1);
    int status = make_room(sync, bucket);
    activity_leave();
    copies->seconds += MPI_Wtime() - began;
    return status ? status : begin(sync, bucket, GATHERING, x);
}

int sync_reduce(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    int place = 0;
    if (!b->shared) TRY(sync_partial(sync, b->ready, gradient));
    if (++sync->reduced == sync->shards->buckets) { /* what comes next is another step */
        sync->reduced = 0;
        sync->from = sync->highest + 1;
    }
    if (copies_of(sync)->size == 1) return 0;
    if (sync->bucket[bucket].phase != IDLE) return wrong_phase("reduction", bucket);
    while (place < SYNC_IN_FLIGHT && sync->used[place]) place++;
    if (place == SYNC_IN_FLIGHT)
        return gdn_fail(GDN_INTERNAL, "gradient bucket %d would be one more than the %d in flight", bucket,
                        SYNC_IN_FLIGHT);
    sync->used[sync->bucket[bucket].place = place] = true;
    return begin(sync, bucket, REDUCING, gradient + b->first);
}

int sync_finish(struct sync *sync, int bucket, real *gradient) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    if (copies_of(sync)->size == 1) return 0;
    if (sync->bucket[bucket].phase != REDUCING) return wrong_phase("the end of a reduction", bucket);
    TRY(end(sync, bucket));
    sync->used[sync->bucket[bucket].place] = false;
    if (b->sharded) return 0;
    TRY(start_gather(sync, bucket, gradient + b->first));
    return end(sync, bucket);
}

int sync_gather(struct sync *sync, int bucket, real *weight) {
    const struct bucket *b = &sync->shards->bucket[bucket];
    if (copies_of(sync)->size == 1 || !b->sharded) return 0;
    if (sync->bucket[bucket].phase != IDLE) return wrong_phase("the gather", bucket);
    return start_gather(sync, bucket, weight + b->first);
}

int sync_gathered(struct sync *sync, int bucket) {
    if (copies_of(sync)->size == 1 || !sync->shards->bucket[bucket].sharded) return 0;
    if (sync->bucket[bucket].phase != GATHERING) return wrong_phase("the end of a gather", bucket);
    return end(sync, bucket);
}

int sync_progress(struct sync *sync) {
    const struct axis *copies = copies_of(sync);
    for (int b = 0; sync->under_way && b < sync->shards->buckets; b++)
        if (sync->bucket[b].phase != IDLE) TRY(async_op_move(&sync->bucket[b].op));
    if (sync->first < 0 || copies->device_comm || copies->staging) return 0;
    return async_op_has_come(&sync->bucket[sync->first].op) ? go_on(sync) : 0;
}
