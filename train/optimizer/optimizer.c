#include "train/optimizer/optimizer.h"

#include "kernels/base/status.h"
#include "model/params/find.h"

#include <math.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------- norm */

/* Blocks of this rank in sharded buckets: the same number on every data rank. */
static long own_blocks(const struct shards *shards) {
    long count = 0;
    for (int b = 0; b < shards->buckets; b++)
        if (shards->bucket[b].sharded) count += shards->bucket[b].own_count / SHARD_GRAIN;
    return count;
}

/* Called once to count and once to hand out. */
static void lay_out(struct optimizer *o, const struct table *table, const struct shards *shards, int data) {
    size_t own = (size_t)own_blocks(shards), blocks = (size_t)(table->total / SHARD_GRAIN);
    o->own = arena_take(&o->scratch, own * sizeof *o->own);
    o->gathered = arena_take(&o->scratch, own * (size_t)data * sizeof *o->gathered);
    o->square = arena_take(&o->scratch, blocks * sizeof *o->square);
    o->found = o->square;
    if (o->ops && !o->ops->device->host) o->found = arena_take(&o->on_device, blocks * sizeof *o->found);
}

int optimizer_reserve(struct optimizer *o) {
    o->rule = optimizer_rule_of(o->train);
    o->scratch.name = o->on_device.name = "the gradient norm";
    o->on_device.device = o->ops->device;
    lay_out(o, o->table, o->shards, o->mesh->data.size);
    TRY(arena_reserve(&o->scratch));
    if (o->on_device.used) TRY(arena_reserve(&o->on_device));
    lay_out(o, o->table, o->shards, o->mesh->data.size);
    return 0;
}

long optimizer_planned(const struct table *table, const struct shards *shards, int data) {
    struct optimizer o = {0};
    lay_out(&o, table, shards, data);
    return (long)o.scratch.used;
}

void optimizer_free(struct optimizer *o) {
    arena_free(&o->scratch);
    arena_free(&o->on_device);
}

int64_t optimizer_formula_norm(const struct shards *shards, int data) {
    return axis_formula_gather_doubles(data, own_blocks(shards));
}

/* The squares of this rank's pieces, added to the blocks that they lie in. */
static void find_squares(struct optimizer *o, int active) {
    const struct device *device = o->ops->device;
    const size_t bytes = (size_t)(o->table->total / SHARD_GRAIN) * sizeof *o->square;
    device->clear(o->found, bytes);
    for (int i = 0; i < o->shards->pieces; i++) {
        const struct piece *piece = &o->shards->piece[i];
        const struct row *row = &o->table->row[piece->row];
        if (row->counted && params_active(o->model, row, active))
            o->ops->add_squares(row->offset + piece->first, piece->count, SHARD_GRAIN, o->state->gradient,
                                o->found);
    }
    if (o->found != o->square) device->download(o->square, o->found, bytes);
}

/* Every data rank's squares of its blocks, into their places. */
static void gather_squares(struct optimizer *o) {
    const struct shards *shards = o->shards;
    long own = 0, count = own_blocks(shards);
    for (int b = 0; b < shards->buckets; b++) {
        const struct bucket *bucket = &shards->bucket[b];
        for (long i = 0; bucket->sharded && i < bucket->own_count / SHARD_GRAIN; i++)
            o->own[own++] = o->square[bucket->own_first / SHARD_GRAIN + i];
    }
    axis_gather_doubles(&o->mesh->data, o->own, count, o->gathered);
    for (int rank = 0; rank < o->mesh->data.size; rank++) {
        const double *from = o->gathered + rank * count;
        for (int b = 0; b < shards->buckets; b++) {
            const struct bucket *bucket = &shards->bucket[b];
            long blocks = bucket->own_count / SHARD_GRAIN;
            double *to = o->square + bucket->first / SHARD_GRAIN + rank * blocks;
            for (long i = 0; bucket->sharded && i < blocks; i++) to[i] = *from++;
        }
    }
}

int optimizer_norm(struct optimizer *o, int active, double *norm) {
    const long blocks = o->table->total / SHARD_GRAIN;
    find_squares(o, active);
    gather_squares(o);
    double sum = 0;
    for (long i = 0; i < blocks; i++) sum += o->square[i];
    axis_sum_doubles(&o->mesh->tensor, &sum, 1);
    axis_sum_doubles(&o->mesh->pipeline, &sum, 1);
    *norm = sqrt(sum);
    TRY(o->ops->device->status());
    TRY(o->mesh->data.status);
    TRY(o->mesh->tensor.status);
    return o->mesh->pipeline.status;
}

/* --------------------------------------------------------------------------------------------- update */

double optimizer_clip(const struct optimizer *o, double norm) {
    double max = o->train->grad_clip;
    return max > 0 && norm > max ? max / (norm + 1e-6) : 1; /* 1e-6: as the reference */
}

void optimizer_begin(struct optimizer *o, int active) {
    for (int i = 0; i < o->table->rows; i++)
        if (params_active(o->model, &o->table->row[i], active)) o->state->steps[i]++;
}

static void update_piece(struct optimizer *o, const struct piece *piece, double lr, double gscale) {
    const struct row *row = &o->table->row[piece->row];
    long at = row->offset + piece->first;
    struct update update = {
        .ops = o->ops,
        .train = o->train,
        .row = row,
        .steps = o->state->steps[piece->row],
        .lr = lr * row->treatment.lr_scale,
        .gscale = gscale,
        .count = piece->count,
        .weight = o->state->weight + at,
        .gradient = o->state->gradient + at,
    };
    for (int m = 0; m < row->treatment.moments->count; m++)
        update.moment[m] = o->state->moment[m] + shards_place(o->shards, piece, m);
    o->rule->update(&update);
}

/* Reads weight, gradient and moments, writes weight and moments. */
int64_t optimizer_update_bytes(const struct bucket *bucket) {
    return (3 + 2 * bucket->kept) * bucket->own_count * (int64_t)sizeof(real);
}

/* The first of the pieces, which lie by place in the moments, that a bucket has. */
static int first_piece(const struct shards *shards, const struct bucket *bucket) {
    int low = 0, high = shards->pieces;
    while (low < high) {
        int middle = (low + high) / 2;
        if (shards->piece[middle].moment >= bucket->moment)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void optimizer_update(struct optimizer *o, int bucket, int active, double lr, double gscale) {
    const struct shards *shards = o->shards;
    for (int i = first_piece(shards, &shards->bucket[bucket]); i < shards->pieces; i++) {
        const struct piece *piece = &shards->piece[i];
        if (piece->bucket != bucket) break;
        if (params_active(o->model, &o->table->row[piece->row], active)) update_piece(o, piece, lr, gscale);
    }
}
