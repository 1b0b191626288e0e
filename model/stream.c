/* The residual stream over the tensor axis: either every rank has all of its rows, or (sequence_parallel) its
 * own rows alone are kept up between the places that need all (Korthikanti et al. 2022). */
#include "model/internal.h"

void stream_sum(struct model *m, real *x) {
    if (m->rows_divided)
        axis_sum_rows(m->tensor, x, m->T, m->config.hidden_size);
    else
        axis_sum(m->tensor, x, m->T * m->config.hidden_size);
}

void stream_whole(struct model *m, real *x) {
    if (m->rows_divided) axis_gather_rows(m->tensor, x, m->T, m->config.hidden_size);
}
