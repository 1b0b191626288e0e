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

bool params_active(const struct model_config *model, const struct row *row, int active) {
    const struct delta_config *delta = &model->delta;
    if (row->select) return active > 0;
    if (!row->distance) return true;
    for (int i = 0; i < active && i < delta->num_distances; i++)
        if (delta->distances[i] == row->distance) return true;
    return false;
}
