#include "dist/layout/deal.h"

#include "kernels/base/status.h"

#include <stdlib.h>
#include <string.h>

bool deal_is_split(const struct row *row) {
    return row->local[0] != row->shape[0] || row->local[1] != row->shape[1];
}

/* What is split first, then by falling cost; names decide what would else depend on the table. */
static int before(const void *a, const void *b, void *context) {
    const struct table *table = context;
    const struct dealt *x = a, *y = b;
    bool split[] = {deal_is_split(&table->row[x->row]), deal_is_split(&table->row[y->row])};
    if (split[0] != split[1]) return split[0] ? -1 : 1;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return strcmp(table->row[x->row].name, table->row[y->row].name);
}

int deal_create(const struct table *table, int data, double (*cost)(long rows, long columns),
                struct deal *out) {
    double *load = calloc((size_t)data, sizeof *load);
    *out = (struct deal){.item = calloc((size_t)table->rows + 1, sizeof *out->item)};
    if (!load || !out->item) {
        free(load);
        deal_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory for a list of %d tensors", table->rows);
    }
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (row->treatment.whole)
            out->item[out->count++] = (struct dealt){.row = i, .cost = cost(row->shape[0], row->shape[1])};
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
