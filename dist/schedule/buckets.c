#include "dist/schedule/private.h"
#include "kernels/base/status.h"

#include <stdlib.h>

static const struct shards *shards_of(const struct builder *b, int rank) {
    return b->options->shards ? &b->options->shards[rank] : NULL;
}

static void append_bucket(struct builder *builder, int rank, enum act act, int bucket) {
    struct action action = action_blank(act);
    action.index = bucket;
    schedule_append(builder, rank, action);
}

int buckets_begin(const struct builder *builder, int rank, struct syncing *out) {
    const struct shards *shards = shards_of(builder, rank);
    *out = (struct syncing){0};
    if (!shards) return 0;
    out->queue = malloc((size_t)(shards->buckets + 1) * sizeof *out->queue);
    if (!out->queue)
        return gdn_fail(GDN_INTERNAL, "out of memory for the schedule of %d buckets", shards->buckets);
    for (int b = 0; b < shards->buckets; b++) {
        if (shards->bucket[b].shared) continue;
        int at = out->plain++; /* behind those that are complete earlier or at the same layer */
        for (; at > 0 && shards->bucket[out->queue[at - 1]].ready < shards->bucket[b].ready; at--)
            out->queue[at] = out->queue[at - 1];
        out->queue[at] = b;
    }
    for (int b = 0, n = out->plain; b < shards->buckets; b++)
        if (shards->bucket[b].shared) out->queue[n++] = b;
    return 0;
}

int buckets_cut(const struct builder *builder, int rank, const struct syncing *sync, int layer, int end) {
    const struct shards *shards = shards_of(builder, rank);
    int cut = end;
    for (int q = 0; shards && builder->options->overlap && q < sync->plain; q++) {
        int ready = shards->bucket[sync->queue[q]].ready;
        if (ready <= layer && ready > cut) cut = ready;
    }
    return cut;
}

static void finish(struct builder *builder, int rank, struct syncing *sync) {
    append_bucket(builder, rank, ACT_FINISH, sync->queue[sync->finished++]);
}

static void reduce(struct builder *builder, int rank, struct syncing *sync) {
    if (sync->reduced - sync->finished == SYNC_IN_FLIGHT) finish(builder, rank, sync);
    append_bucket(builder, rank, ACT_REDUCE, sync->queue[sync->reduced++]);
}

void buckets_after_layer(struct builder *builder, int rank, struct syncing *sync, int layer) {
    const struct shards *shards = shards_of(builder, rank);
    if (!shards || !builder->options->overlap) return;
    while (sync->reduced < sync->plain && shards->bucket[sync->queue[sync->reduced]].ready >= layer)
        reduce(builder, rank, sync);
}

void buckets_finish(struct builder *builder, int rank, struct syncing *sync) {
    const struct shards *shards = shards_of(builder, rank);
    while (sync->reduced < sync->plain) reduce(builder, rank, sync);
    if (builder->options->share) schedule_append(builder, rank, action_blank(ACT_SHARE));
    if (!shards) return;
    while (sync->reduced < shards->buckets) reduce(builder, rank, sync);
    while (sync->finished < shards->buckets) finish(builder, rank, sync);
    schedule_append(builder, rank, action_blank(ACT_NORM));
    for (int q = 0; q < shards->buckets; q++) {
        append_bucket(builder, rank, ACT_UPDATE, sync->queue[q]);
        append_bucket(builder, rank, ACT_GATHER, sync->queue[q]);
    }
    for (int q = 0; q < shards->buckets; q++) append_bucket(builder, rank, ACT_GATHERED, sync->queue[q]);
}
