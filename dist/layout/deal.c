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
    if (first->treatment.whole != WHOLE_HEADS) return m;
    m.rows /= first->heads; /* tensor ranks have whole heads */
    m.parts = first->local[0] / m.rows;
    m.split = false;
    return m;
}

/* What is split first, then by falling cost; names decide what would else depend on the table. */
static int before(const void *a, const void *b, void *context) {
    const struct table *table = context;
    const struct dealt *x = a, *y = b;
    bool split[] = {deal_shape(table, x->row).split, deal_shape(table, y->row).split};
    if (split[0] != split[1]) return split[0] ? -1 : 1;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return strcmp(table->row[x->row].name, table->row[y->row].name);
}

int deal_create(const struct table *table, int data, deal_cost *cost, const void *context, struct deal *out) {
    double *load = calloc((size_t)data, sizeof *load);
    *out = (struct deal){.item = calloc((size_t)table->rows + 1, sizeof *out->item)};
    if (!load || !out->item) {
        free(load);
        deal_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory for a list of %d tensors", table->rows);
    }
    for (int i = 0; i < table->rows; i++) {
        const struct matrix_shape m = deal_shape(table, i);
        if (m.tensors)
            out->item[out->count++] =
                (struct dealt){.row = i, .cost = (double)m.parts * cost(context, m.rows, m.columns)};
    }
    qsort_r(out->item, (size_t)out->count, sizeof *out->item, before, (void *)table);
    for (int i = 0; i < out->count; i++) {
        struct dealt *item = &out->item[i];
        for (int rank = 1; rank < data; rank++)
            if (load[rank] < load[item->owner]) item->owner = rank;
        load[item->owner] += item->cost;
    }
    free(load);
    return 0;
}

void deal_free(struct deal *deal) {
    free(deal->item);
    *deal = (struct deal){0};
}
