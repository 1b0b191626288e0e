#include "train/optimizer/matrices.h"

#include "dist/sync/rounds.h"
#include "dist/sync/whole.h"
#include "kernels/base/status.h"
#include "model/params/find.h"

#include <stdlib.h>

/* ------------------------------------------------------------------------------------------- one matrix */

/* `split`: put together in o->whole; else where its tensors are. */
static void compute(struct optimizer *o, int index, bool split) {
    const struct row *row = &o->table->row[index];
    const struct matrix_shape shape = deal_shape(o->table, index);
    struct matrix matrix = {
        .ops = o->ops,
        .train = o->train,
        .row = row,
        .steps = o->state->steps[index],
        .rows = row->transposed ? shape.columns : shape.rows,
        .columns = row->transposed ? shape.rows : shape.columns,
        .x = split ? o->whole : o->state->gradient + row->offset,
        .workspace = o->workspace,
    };
    for (long part = 0; part < shape.parts; part++) {
        o->rule->matrix(&matrix);
        matrix.x += shape.rows * shape.columns;
    }
}

/* ------------------------------------------------------------------------------------------- all of them */

static void prepare(struct optimizer *o, const struct edge_set *active, double gscale) {
    for (int i = 0; i < o->shards->pieces; i++) {
        const struct piece *piece = &o->shards->piece[i];
        const struct row *row = &o->table->row[piece->row];
        if (!row->treatment.whole || !params_active(row, active)) continue;
        const struct update update = optimizer_piece(o, piece, &(struct rates){.gscale = gscale});
        o->rule->prepare(&update);
    }
}

/* What this copy's tensor ranks work on for each other. */
static int compute_rounds(struct optimizer *o) {
    const struct rounds rounds = {.mesh = o->mesh,
                                  .table = o->table,
                                  .deal = &o->deal,
                                  .x = o->state->gradient,
                                  .whole = o->whole,
                                  .scratch = o->workspace};
    const int *own = &o->deal.turn[o->mesh->axis[AXIS_TENSOR].index];
    deal_rewind(&o->deal);
    while (deal_round(&o->deal, o->mesh->axis[AXIS_COPIES].index)) {
        TRY(rounds_collect(&rounds));
        if (*own < o->deal.count) {
            const int row = o->deal.item[*own].row;
            compute(o, row, deal_shape(o->table, row).split);
        }
        TRY(rounds_hand_back(&rounds));
    }
    return 0;
}

int matrices_update(struct optimizer *o, const struct edge_set *active, double gscale) {
    struct deal *deal = &o->deal;
    if (!deal->count) return 0;
    for (int i = 0; i < deal->count; i++)
        deal->item[i].active = params_active(&o->table->row[deal->item[i].row], active);
    prepare(o, active, gscale);
    TRY(whole_collect(o->mesh, o->table, o->shards, deal, o->state->gradient));
    TRY(compute_rounds(o));
    for (int i = 0; i < deal->count; i++)
        if (deal->item[i].active && deal->item[i].owner == o->mesh->axis[AXIS_COPIES].index &&
            deal->item[i].tensor == ALL_TENSOR_RANKS)
            compute(o, deal->item[i].row, false);
    return whole_hand_back(o->mesh, o->table, o->shards, deal, o->state->gradient);
}

/* ------------------------------------------------------------------------------------------- planning */

void matrices_raise(struct matrices_cost *most, const struct matrices_cost *cost) {
    if (cost->flops > most->flops) most->flops = cost->flops;
    if (cost->copy_bytes > most->copy_bytes) most->copy_bytes = cost->copy_bytes;
    if (cost->tensor_bytes > most->tensor_bytes) most->tensor_bytes = cost->tensor_bytes;
}

int matrices_plan(const struct train_config *train, const struct table *table, const struct shards *shards,
                  const struct deal_ranks *ranks, struct matrices_cost *out) {
    const struct optimizer_rule *rule = optimizer_rule_of(train);
    struct deal deal;
    for (int rank = 0; rank < ranks->copies; rank++) out[rank] = (struct matrices_cost){0};
    if (!rule->whole) return 0;
    int64_t *bytes = calloc((size_t)ranks->copies, sizeof *bytes);
    if (!bytes) return gdn_fail(GDN_INTERNAL, "out of memory for the plan of an optimiser");
    int status = deal_create(table, ranks, optimizer_matrix_cost, train, &deal);
    if (!status) {
        whole_formula(table, shards, &deal, ranks, bytes);
        for (int i = 0; i < deal.count; i++) {
            const struct dealt *item = &deal.item[i];
            struct matrices_cost *cost = &out[item->owner];
            bool other = item->tensor != ALL_TENSOR_RANKS && item->tensor != ranks->tensor_index;
            cost->flops += other ? 0 : item->cost;
            cost->tensor_bytes += rounds_formula(table, item, ranks);
        }
        for (int rank = 0; rank < ranks->copies; rank++) out[rank].copy_bytes = bytes[rank];
        deal_free(&deal);
    }
    free(bytes);
    return status;
}
