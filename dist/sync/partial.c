/* Rows whose gradients are parts of a sum over the tensor axis: one sum a layer. */
#include "dist/sync/private.h"

/* Elements of a layer's partial rows, of those in shared zones or of the others. */
static long partial_count(const struct table *table, int layer, bool shared) {
    long count = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (row->partial && row->layer == layer && is_shared(row) == shared) count += row->count;
    }
    return count;
}

void sync_sum_partial(struct sync *sync, int layer, bool shared, real *gradient) {
    const struct table *table = sync->table;
    const struct ops *ops = sync->mesh->axis[AXIS_TENSOR].ops;
    long count = partial_count(table, layer, shared);
    if (!count) return;
    for (int unpack = 0; unpack < 2; unpack++) {
        real *at = sync->packed;
        for (int i = 0; i < table->rows; i++) {
            const struct row *row = &table->row[i];
            if (!row->partial || row->layer != layer || is_shared(row) != shared) continue;
            real *own = gradient + row->offset;
            ops->copy(row->count, unpack ? at : own, unpack ? own : at);
            at += row->count;
        }
        if (!unpack) axis_sum_exact(&sync->mesh->axis[AXIS_TENSOR], sync->packed, count);
    }
}

int sync_partial(struct sync *sync, int layer, real *gradient) {
    if (sync->mesh->axis[AXIS_TENSOR].size == 1) return 0;
    int down_to = layer > sync->lowest ? layer : sync->lowest;
    while (sync->from > down_to) sync_sum_partial(sync, --sync->from, false, gradient);
    return sync->mesh->axis[AXIS_TENSOR].status;
}
