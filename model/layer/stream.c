/* The residual stream over the tensor axis: either every rank has all of its rows, or (sequence_parallel) its
 * own rows alone are kept up, and kept for the backward pass, between the places that need all, which gather
 * them (Korthikanti et al. 2022). */
#include "model/layer/stream.h"

#include "model/base/terms.h"

static void sum(struct model *m, real *x, long width) {
    if (end_terms(m, x)) return;
    if (m->rows_divided)
        axis_sum_rows(m->tensor, x, m->T, width);
    else
        axis_sum(m->tensor, x, m->T * width);
}

static void gather(struct model *m, real *x, long width) {
    if (m->rows_divided) axis_gather_rows(m->tensor, x, m->T, width);
}

void stream_sum(struct model *m, real *x) {
    sum(m, x, m->stream);
}

void stream_full(struct model *m, real *x) {
    gather(m, x, m->stream);
}

void block_sum(struct model *m, real *x) {
    sum(m, x, m->config.hidden_size);
}

void block_full(struct model *m, real *x) {
    gather(m, x, m->config.hidden_size);
}

void stream_round(struct model *m, real *x) {
    if (m->config.residual == RESIDUAL_BF16) m->ops->round_bf16(m->rows * m->stream, x);
}

void stream_written(struct model *m, const real *own) {
    struct trunk *t = m->trunk;
    if (t->full_of == own) t->full_of = NULL;
}

const real *stream_all(struct model *m, const real *own) {
    struct trunk *t = m->trunk;
    if (!m->rows_divided) return own;
    if (t->full_of == own) return t->full;
    m->ops->copy(m->rows * m->config.hidden_size, own, own_rows(m, t->full));
    block_full(m, t->full);
    t->full_of = own;
    return t->full;
}

void gradient_full(struct model *m) {
    if (!m->g_full) stream_full(m, m->g);
    m->g_full = true;
}
