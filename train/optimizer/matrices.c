#include "train/optimizer/matrices.h"

#include "dist/sync/whole.h"
#include "kernels/base/status.h"
#include "model/params/find.h"

#include <stdlib.h>

/* How a tensor lies in memory, of its global shape, and where this rank's part of it is. */
struct place {
    long rows, columns;
    bool by_rows; /* the part is of consecutive rows, else of columns */
    long first;   /* its first one */
    long width;   /* columns of the part */
};

static struct place place_of(const struct row *row) {
    int down = row->transposed ? 1 : 0, across = 1 - down; /* dimensions of the tensor */
    bool by_rows = row->local[across] == row->shape[across];
    return (struct place){
        .rows = row->shape[down],
        .columns = row->shape[across],
        .by_rows = by_rows,
        .first = row->start[by_rows ? down : across],
        .width = row->local[across],
    };
}

/* ------------------------------------------------------------------------------------------- one matrix */

/* A tensor from all tensor ranks' parts, to `all`. */
static void put_together(struct optimizer *o, const struct row *row, real *all) {
    const struct place p = place_of(row);
    const real *part = o->state->gradient + row->offset;
    struct axis *tensor = &o->mesh->axis[AXIS_TENSOR];
    if (!p.by_rows) {
        axis_gather_columns(tensor, part, p.rows, p.width, all);
        return;
    }
    o->ops->copy(row->count, part, all + p.first * p.columns);
    axis_gather_rows(tensor, all, p.rows, p.columns);
}

static void take_part(struct optimizer *o, const struct row *row, real *all) {
    const struct place p = place_of(row);
    real *part = o->state->gradient + row->offset;
    if (p.by_rows)
        o->ops->copy(row->count, all + p.first * p.columns, part);
    else
        o->ops->copy_columns(p.rows, p.width, all + p.first, p.columns, part, p.width);
}

/* One way or the other, of tensors that are joined one after the other. */
static void each_tensor(struct optimizer *o, int row, int tensors,
                        void (*move)(struct optimizer *o, const struct row *row, real *all)) {
    real *all = o->whole;
    for (int i = row; i < row + tensors; i++) {
        move(o, &o->table->row[i], all);
        all += o->table->row[i].shape[0] * o->table->row[i].shape[1];
    }
}

static void compute(struct optimizer *o, int index) {
    const struct row *row = &o->table->row[index];
    const struct matrix_shape shape = deal_shape(o->table, index);
    if (shape.split) each_tensor(o, index, shape.tensors, put_together);
    struct matrix matrix = {
        .ops = o->ops,
        .train = o->train,
        .row = row,
        .steps = o->state->steps[index],
        .rows = row->transposed ? shape.columns : shape.rows,
        .columns = row->transposed ? shape.rows : shape.columns,
        .x = shape.split ? o->whole : o->state->gradient + row->offset,
        .workspace = o->workspace,
    };
    for (long part = 0; part < shape.parts; part++) {
        o->rule->matrix(&matrix);
        matrix.x += shape.rows * shape.columns;
    }
    if (shape.split) each_tensor(o, index, shape.tensors, take_part);
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

int matrices_update(struct optimizer *o, const struct edge_set *active, double gscale) {
    struct deal *deal = &o->deal;
    if (!deal->count) return 0;
    for (int i = 0; i < deal->count; i++)
        deal->item[i].active = params_active(&o->table->row[deal->item[i].row], active);
    prepare(o, active, gscale);
    TRY(whole_collect(o->mesh, o->table, o->shards, deal, o->state->gradient));
    for (int i = 0; i < deal->count; i++)
        if (deal->item[i].active && deal->item[i].owner == o->mesh->axis[AXIS_DATA].index)
            compute(o, deal->item[i].row);
    TRY(o->mesh->axis[AXIS_TENSOR].status);
    return whole_hand_back(o->mesh, o->table, o->shards, deal, o->state->gradient);
}

/* ------------------------------------------------------------------------------------------- planning */

static int64_t gather_bytes(const struct table *table, int row, int tensor, int tensor_index) {
    const struct matrix_shape shape = deal_shape(table, row);
    int64_t bytes = 0;
    for (int i = row; i < row + shape.tensors && shape.split; i++) {
        const struct place p = place_of(&table->row[i]);
        bytes += p.by_rows ? axis_formula_gather_rows(tensor, tensor_index, p.rows, p.columns)
                           : axis_formula_gather_columns(tensor, p.rows, p.width);
    }
    return bytes;
}

int matrices_plan(const struct train_config *train, const struct table *table, const struct shards *shards,
                  int data, int tensor, int tensor_index, struct matrices_cost *out) {
    const struct optimizer_rule *rule = optimizer_rule_of(train);
    struct deal deal;
    for (int rank = 0; rank < data; rank++) out[rank] = (struct matrices_cost){0};
    if (!rule->whole) return 0;
    int64_t *bytes = calloc((size_t)data, sizeof *bytes);
    if (!bytes) return gdn_fail(GDN_INTERNAL, "out of memory for the plan of an optimiser");
    int status = deal_create(table, data, optimizer_matrix_cost, train, &deal);
    if (!status) {
        whole_formula(table, shards, &deal, data, bytes);
        for (int i = 0; i < deal.count; i++) {
            struct matrices_cost *cost = &out[deal.item[i].owner];
            cost->flops += deal.item[i].cost;
            cost->tensor_bytes += gather_bytes(table, deal.item[i].row, tensor, tensor_index);
        }
        for (int rank = 0; rank < data; rank++) out[rank].data_bytes = bytes[rank];
        deal_free(&deal);
    }
    free(bytes);
    return status;
}
