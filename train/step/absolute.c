/* R_1, the sum of the absolute weights of active connections (model.md, 5). It depends on no micro-batch: the
 * gradients that a step adds up begin with its own instead of zero, on the one rank that counts an element.
 * A connection's tensors are divided over the tensor axis, held whole by one of its ranks, or of gradients
 * that are parts of a sum over it; so from there sums over ranks take it to all. */
#include <string.h>

#include "model/params/find.h"
#include "train/step/private.h"

static bool of_connections(const struct row *row) {
    return strstr(row->name, ".delta.") != NULL;
}

void executor_begin_absolute(struct executor *x) {
    const struct loss_options *options = x->step->options;
    const struct state *state = x->e.state;
    if (options->l1_weight == 0) return;
    x->e.ops->device->clear(x->absolute, sizeof *x->absolute);
    if (x->e.mesh->axis[AXIS_COPIES].index > 0) return;
    for (int i = 0; i < x->table->rows; i++) {
        const struct row *row = &x->table->row[i];
        if (!row->counted || !of_connections(row) || !params_active(row, options->active)) continue;
        const real *w = state->weight + row->offset;
        x->e.ops->add_signs(row->count, options->l1_weight, w, state->gradient + row->offset);
        x->e.ops->add_absolutes(row->count, w, x->absolute);
    }
}

double executor_absolute(const struct executor *x) {
    double sum = 0;
    if (x->step->options->l1_weight > 0) x->e.ops->device->download(&sum, x->absolute, sizeof sum);
    return sum;
}
