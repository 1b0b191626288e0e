/* The residual stream over the tensor axis: either every rank has all of its rows, or (sequence_parallel) its
 * own rows alone are kept up, and kept for the backward pass, between the places that need all, which gather
 * them (Korthikanti et al. 2022). */
#include "model/layer/stream.h"

void stream_sum(struct model *m, real *x) {
    if (m->rows_divided)
        axis_sum_rows(m->tensor, x, m->T, m->config.hidden_size);
    else
        axis_sum(m->tensor, x, m->T * m->config.hidden_size);
}

void stream_written(struct model *m, const real *own) {
    struct trunk *t = m->trunk;
    if (t->whole_of == own) t->whole_of = NULL;
}

const real *stream_all(struct model *m, const real *own) {
    struct trunk *t = m->trunk;
    if (!m->rows_divided) return own;
    if (t->whole_of == own) return t->whole;
    m->ops->copy(m->rows * m->config.hidden_size, own, own_rows(m, t->whole));
    stream_whole(m, t->whole);
    t->whole_of = own;
    return t->whole;
}

void stream_whole(struct model *m, real *x) {
    if (m->rows_divided) axis_gather_rows(m->tensor, x, m->T, m->config.hidden_size);
}

void gradient_whole(struct model *m) {
    if (!m->g_whole) stream_whole(m, m->g);
    m->g_whole = true;
}
