#include "train/optimizer/optimizer.h"

#include "dist/sync/rounds.h"
#include "kernels/base/status.h"
#include "model/params/find.h"

#include <math.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------- norm */

/* Blocks of this rank in sharded buckets: the same number on every copy. */
static long own_blocks(const struct shards *shards) {
    long count = 0;
    for (int b = 0; b < shards->buckets; b++)
        if (shards->bucket[b].sharded) count += shards->bucket[b].own_count / SHARD_GRAIN;
    return count;
}

/* The largest matrix that is put together, and the largest workspace, which its parts lie in before. */
static void lay_out_matrices(struct optimizer *o, const struct table *table) {
    const struct rounds_size size = rounds_sizes(table);
    long workspace = size.scratch;
    for (int i = 0; i < table->rows && o->rule->whole; i++) {
        const struct matrix_shape shape = deal_shape(table, i);
        long own = shape.tensors ? o->rule->workspace(shape.rows, shape.columns) : 0;
        if (own > workspace) workspace = own;
    }
    if (size.whole) o->whole = arena_take(&o->matrices, (size_t)size.whole * sizeof *o->whole);
    if (workspace) o->workspace = arena_take(&o->matrices, (size_t)workspace * sizeof *o->workspace);
}

/* Called once to count and once to hand out. */
static void lay_out(struct optimizer *o, const struct table *table, const struct shards *shards, int copies) {
    size_t own = (size_t)own_blocks(shards), blocks = (size_t)(table->total / SHARD_GRAIN);
    o->own = arena_take(&o->scratch, own * sizeof *o->own);
    o->gathered = arena_take(&o->scratch, own * (size_t)copies * sizeof *o->gathered);
    o->square = arena_take(&o->scratch, blocks * sizeof *o->square);
    o->found = o->square;
    if (o->ops && !o->ops->device->host) o->found = arena_take(&o->on_device, blocks * sizeof *o->found);
    lay_out_matrices(o, table);
}

double optimizer_matrix_cost(const void *train, long rows, long columns) {
    return optimizer_rule_of(train)->flops(train, rows, columns);
}

int optimizer_reserve(struct optimizer *o) {
    o->rule = optimizer_rule_of(o->train);
    o->scratch.name = o->on_device.name = "the gradient norm";
    o->matrices.name = "the update of whole matrices";
    o->on_device.device = o->matrices.device = o->ops->device;
    lay_out(o, o->table, o->shards, o->mesh->axis[AXIS_COPIES].size);
    TRY(arena_reserve(&o->scratch));
    if (o->on_device.used) TRY(arena_reserve(&o->on_device));
    if (o->matrices.used) TRY(arena_reserve(&o->matrices));
    lay_out(o, o->table, o->shards, o->mesh->axis[AXIS_COPIES].size);
    if (!o->rule->whole) return 0;
    const struct axis *tensor = &o->mesh->axis[AXIS_TENSOR];
    const struct deal_ranks ranks = {o->mesh->axis[AXIS_COPIES].size, tensor->size, tensor->index};
    return deal_create(o->table, &ranks, optimizer_matrix_cost, o->train, &o->deal);
}

long optimizer_planned(const struct train_config *train, const struct table *table,
                       const struct shards *shards, int copies) {
    struct optimizer o = {.rule = optimizer_rule_of(train), .table = table};
    lay_out(&o, table, shards, copies);
    return (long)(o.scratch.used + o.matrices.used);
}

long optimizer_reserved(const struct optimizer *o) {
    return (long)(o->scratch.size + o->matrices.size);
}

void optimizer_free(struct optimizer *o) {
    arena_free(&o->scratch);
    arena_free(&o->on_device);
    arena_free(&o->matrices);
    deal_free(&o->deal);
}

int64_t optimizer_formula_norm(const struct shards *shards, int copies) {
    return axis_formula_gather_doubles(copies, own_blocks(shards));
}

/* The squares of this rank's pieces, added to the blocks that they lie in. */
static void find_squares(struct optimizer *o, const struct edge_set *active) {
    const struct device *device = o->ops->device;
    const size_t bytes = (size_t)(o->table->total / SHARD_GRAIN) * sizeof *o->square;
    device->clear(o->found, bytes);
    for (int i = 0; i < o->shards->pieces; i++) {
        const struct piece *piece = &o->shards->piece[i];
        const struct row *row = &o->table->row[piece->row];
        if (row->counted && params_active(row, active))
            o->ops->add_squares(row->offset + piece->first, piece->count, SHARD_GRAIN, o->state->gradient,
                                o->found);
    }
    if (o->found != o->square) device->download(o->square, o->found, bytes);
}

/* Every copy's squares of its blocks, into their places. */
static void gather_squares(struct optimizer *o) {
    const struct shards *shards = o->shards;
    long own = 0, count = own_blocks(shards);
    for (int b = 0; b < shards->buckets; b++) {
        const struct bucket *bucket = &shards->bucket[b];
        for (long i = 0; bucket->sharded && i < bucket->own_count / SHARD_GRAIN; i++)
            o->own[own++] = o->square[bucket->own_first / SHARD_GRAIN + i];
    }
    axis_gather_doubles(&o->mesh->axis[AXIS_COPIES], o->own, count, o->gathered);
    for (int rank = 0; rank < o->mesh->axis[AXIS_COPIES].size; rank++) {
        const double *from = o->gathered + rank * count;
        for (int b = 0; b < shards->buckets; b++) {
            const struct bucket *bucket = &shards->bucket[b];
            long blocks = bucket->own_count / SHARD_GRAIN;
            double *to = o->square + bucket->first / SHARD_GRAIN +
                         shards_part(shards->copies, shards->group, rank) * blocks;
            for (long i = 0; bucket->sharded && i < blocks; i++) to[i] = *from++;
        }
    }
}

int optimizer_norm(struct optimizer *o, const struct edge_set *active, double *norm) {
    const long blocks = o->table->total / SHARD_GRAIN;
    find_squares(o, active);
    gather_squares(o);
    double sum = 0;
    for (long i = 0; i < blocks; i++) sum += o->square[i];
    for (int i = 0; i < axes_count(); i++)
        if (!axis_rows[axis_sum_order[i]].gradients)
            axis_sum_doubles(&o->mesh->axis[axis_sum_order[i]], &sum, 1);
    *norm = sqrt(sum);
    TRY(o->ops->device->status());
    for (int a = 0; a < axes_count(); a++) TRY(o->mesh->axis[a].status);
    return 0;
}

/* --------------------------------------------------------------------------------------------- update */

double optimizer_clip(const struct optimizer *o, double norm) {
    double max = o->train->grad_clip;
    return max > 0 && norm > max ? max / (norm + 1e-6) : 1; /* 1e-6: as the reference */
}

struct update optimizer_piece(const struct optimizer *o, const struct piece *piece,
                              const struct rates *rates) {
    const struct row *row = &o->table->row[piece->row];
    long at = row->offset + piece->first;
    struct update update = {
        .ops = o->ops,
        .train = o->train,
        .row = row,
        .steps = o->state->steps[piece->row],
        .lr = rates->lr * row->treatment.lr_scale,
        .decay = rates->decay * row->treatment.weight_decay,
        .gscale = rates->gscale,
        .count = piece->count,
        .weight = o->state->weight + at,
        .gradient = o->state->gradient + at,
    };
    for (int m = 0; m < row->treatment.moments->count; m++)
        update.moment[m] = o->state->moment[m] + shards_place(o->shards, piece, m);
    return update;
}
