/* The aggregate `multihead` (model.md, 4), which mixes the contributions themselves, a head at a time. Over
 * the tensor axis heads are divided. */
#include "model/delta/private.h"

/* This rank's columns of contributions [T, all, D], compact in scratch; themselves where it has all. */
static const real *own_columns(const struct delta_pass *p, const real *c) {
    const struct model *m = p->m;
    const struct delta_part *part = &m->delta->part;
    long D = m->config.hidden_size;
    if (part->D == D) return c;
    m->ops->copy_columns(m->T * p->all, part->D, c + part->column, D, m->delta->columns_c, part->D);
    return m->delta->columns_c;
}

void multihead_products(struct delta_pass *p) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D;
    m->ops->gemm('N', 'T', T, W, D, 1, p->t, D, c->multihead.to_query.w, D, 0, c->multihead.query, W);
    m->ops->gemm('N', 'T', T * p->all, W, D, 1, c->multihead.c, D, c->multihead.to_key.w, D, 0,
                 c->multihead.key, W);
}

void multihead_forward(struct delta_pass *p, real *z) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D;
    bool divided = W < D;
    real *out = divided ? m->delta->columns_out : z;
    multihead_products(p);
    if (divided) m->ops->zero(T * W, out);
    m->ops->multihead(T, p->all, W, m->delta->part.heads, c->multihead.query, c->multihead.key,
                      own_columns(p, c->multihead.c), c->multihead.alpha, out);
    if (!divided) return;
    axis_gather_columns(m->tensor, out, T, W, m->delta->mean);
    m->ops->add(m->rows * D, own_rows(m, m->delta->mean), z);
}

/* The gradient of the contributions through this rank's heads: columns of its own from their sum, all from
 * the keys. */
void multihead_backward(struct delta_pass *p, const real *dz) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct delta_part *part = &m->delta->part;
    long T = m->T, D = m->config.hidden_size, W = part->D;
    bool divided = W < D;
    real *query = c->multihead.query, *key = c->multihead.key; /* become their gradients */
    real *dc = divided ? m->delta->columns_dc : m->delta->dc;
    const real *out = dz;
    if (divided) {
        m->ops->copy_columns(T, W, dz + part->column, D, m->delta->columns_out, W);
        out = m->delta->columns_out;
    }
    m->ops->multihead_back(T, p->all, W, part->heads, query, key, own_columns(p, c->multihead.c),
                           c->multihead.alpha, out, dc);
    if (divided) {
        m->ops->zero(T * p->all * D, m->delta->dc);
        m->ops->copy_columns(T * p->all, W, dc, W, m->delta->dc + part->column, D);
    }
    m->ops->gemm('N', 'N', T * p->all, D, W, 1, key, W, c->multihead.to_key.w, D, 1, m->delta->dc, D);
    m->ops->gemm('T', 'N', W, D, T * p->all, 1, key, W, c->multihead.c, D, 1, c->multihead.to_key.g, D);
    m->ops->gemm('T', 'N', W, D, T, 1, query, W, p->t, D, 1, c->multihead.to_query.g, D);
    m->ops->gemm('N', 'N', T, D, W, 1, query, W, c->multihead.to_query.w, D, 1, p->dt,
                 D); /* dz is used up where dt is dz */
    axis_sum(m->tensor, m->delta->dc, T * p->all * D);
}
