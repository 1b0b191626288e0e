/* R_1 (model.md, 5) of a whole model by itself: its sum, and its gradients, which are added to the state's.
 */
#ifndef GDN_TEST_ABSOLUTE_H
#define GDN_TEST_ABSOLUTE_H

#include <math.h>
#include <string.h>

#include "model/model.h"
#include "model/params/find.h"

/* 0 where options have no weight for it. */
static inline double add_absolute(const struct table *table, const struct state *state,
                                  const struct loss_options *options) {
    double sum = 0;
    for (int i = 0; options->l1_weight > 0 && i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (!strstr(row->name, ".delta.") || !params_active(row, options->active)) continue;
        for (long j = row->offset; j < row->offset + row->count; j++) {
            real w = state->weight[j];
            state->gradient[j] += (real)(options->l1_weight * ((w > 0) - (w < 0)));
            sum += fabs((double)w);
        }
    }
    return sum;
}

#endif
