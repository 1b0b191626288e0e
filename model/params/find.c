/* Looks rows of a parameter table up. */
#include "model/params/find.h"

#include <string.h>

const struct row *params_find(const struct table *table, const char *name) {
    int low = 0, high = table->rows;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const struct row *row = &table->row[table->by_name[middle]];
        int order = strcmp(name, row->name);
        if (!order) return row;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool params_active(const struct row *row, const struct edge_set *active) {
    for (int e = row->edge; e < row->edge + row->edges; e++)
        if (edge_set_has(active, e)) return true;
    return !row->edges;
}
