#include "dist/layout/deal.h"

#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

static bool joined(const struct table *table, int row) {
    return row > 0 && row < table->rows && table->row[row].joined &&
           table->row[row].treatment.whole == WHOLE_JOINED &&
           table->row[row - 1].treatment.whole == WHOLE_JOINED;
}

struct matrix_shape deal_shape(const struct table *table, int row) {
    const struct row *first = &table->row[row];
    struct matrix_shape m = {.parts = 1, .columns = first->shape[1]};
    if (!first->treatment.whole || joined(table, row)) return m;
    do m.rows += table->row[row + m.tensors++].shape[0];
    while (joined(table, row + m.tensors));
    m.split = first->local[0] != first->shape[0] || first->local[1] != first->shape[1];
    m.copied = first->split == SPLIT_NONE && !first->alone;
    if (first->treatment.whole != WHOLE_HEADS) return m;
    m.rows /= first->heads; /* tensor ranks have whole heads */
    m.parts = first->local[0] / m.rows;
    m.split = false;
    return m;
}

/* What is dealt over tensor ranks first, then by falling cost; names decide what would else depend on the
 * table. */
static int before(const void *a, const void *b, void *context) {
    const struct table *table = context;
    const struct dealt *x = a, *y = b;
    if (x->tensor != y->tensor) return x->tensor > y->tensor ? -1 : 1;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return strcmp(table->row[x->row].name, table->row[y->row].name);
}

/* Operations of a CPU's core in about the time that a message takes to arrive, and a byte of it. */
static const double MESSAGE = 2e5, BYTE = 10;

/* Whether one tensor rank works on the matrix for all. */
static bool for_all(const struct matrix_shape *m, const struct deal_ranks *ranks, double cost) {
    if (ranks->tensor == 1 || m->split) return m->split;
    double bytes = (double)(m->rows * m->columns) * (double)sizeof(real);
    double spared = cost * (ranks->tensor - 1) / ranks->tensor; /* of each rank, on average */
    return m->copied && spared > (ranks->tensor - 1) * (MESSAGE + BYTE * bytes);
}

static void list(const struct table *table, const struct deal_ranks *ranks, deal_cost *cost,
                 const void *context, struct deal *out) {
    for (int i = 0; i < table->rows; i++) {
        const struct matrix_shape m = deal_shape(table, i);
        if (!m.tensors) continue;
        struct dealt *item = &out->item[out->count++];
        *item = (struct dealt){.row = i, .cost = (double)m.parts * cost(context, m.rows, m.columns)};
        item->tensor = for_all(&m, ranks, item->cost) ? 0 : ALL_TENSOR_RANKS;
    }
    qsort_r(out->item, (size_t)out->count, sizeof *out->item, before, (void *)table);
}

/* To the first of the ranks that have least. */
static void deal_out(struct dealt *item, const struct deal_ranks *ranks, double *load) {
    bool one = item->tensor != ALL_TENSOR_RANKS;
    int least = one ? 0 : ranks->tensor_index, step = one ? 1 : ranks->tensor;
    for (int rank = least + step; rank < ranks->copies * ranks->tensor; rank += step)
        if (load[rank] < load[least]) least = rank;
    load[least] += item->cost;
    item->owner = least / ranks->tensor;
    if (one) item->tensor = least % ranks->tensor;
}

int deal_create(const struct table *table, const struct deal_ranks *ranks, deal_cost *cost,
                const void *context, struct deal *out) {
    double *load = calloc((size_t)(ranks->copies * ranks->tensor), sizeof *load);
    *out = (struct deal){.item = calloc((size_t)table->rows + 1, sizeof *out->item),
                         .turn = calloc((size_t)ranks->tensor, sizeof *out->turn),
                         .tensor = ranks->tensor};
    if (!load || !out->item || !out->turn) {
        free(load);
        deal_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory for a list of %d tensors", table->rows);
    }
    list(table, ranks, cost, context, out);
    for (int i = 0; i < out->count; i++) deal_out(&out->item[i], ranks, load);
    free(load);
    return 0;
}

void deal_free(struct deal *deal) {
    free(deal->item);
    free(deal->turn);
    *deal = (struct deal){0};
}

void deal_rewind(struct deal *deal) {
    for (int t = 0; t < deal->tensor; t++) deal->turn[t] = -1;
}

bool deal_round(struct deal *deal, int copy) {
    bool any = false;
    for (int t = 0; t < deal->tensor; t++) {
        int i = deal->turn[t] < deal->count ? deal->turn[t] + 1 : deal->count;
        while (i < deal->count &&
               !(deal->item[i].active && deal->item[i].owner == copy && deal->item[i].tensor == t))
            i++;
        deal->turn[t] = i;
        any |= i < deal->count;
    }
    return any;
}
