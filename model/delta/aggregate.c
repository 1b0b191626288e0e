/* Aggregation over the active connections of a layer (model.md, 4). Every aggregate but multihead is a weight
 * per token and connection, into which the connection's `mix` folds; multihead mixes the contributions
 * themselves. Over the tensor axis selection's weights are computed by all ranks alike, or where rows are
 * divided by each rank for its own, and multihead's heads are divided. */
#include "model/delta/private.h"

/* Queries of the targets and keys of the sources, of the pass's rows: the own ones. */
static void select_products(struct delta_pass *p) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = p->rows, D = m->config.hidden_size, a = m->config.delta.attention_dim, ld = p->all * a;
    m->ops->gemm('N', 'T', T, a, D, 1, p->t, D, c->select.w, D, 0, c->select_query, a);
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        real *key = c->select_key + i * a;
        if (source->s)
            m->ops->gemm('N', 'T', T, a, D, 1, source->s, D, c->select.w, D, 0, key, ld);
        else
            m->ops->copy_columns(
                T, a, source->projected + projected_select(m, m->T) + p->row0 * a, a, key,
                ld);
    }
}

static void select_forward(const struct delta_pass *full) {
    const struct model *m = full->m;
    struct delta_pass own = on_own_rows(full), *p = &own;
    struct connections *c = p->c;
    long T = p->rows, D = m->config.hidden_size, a = m->config.delta.attention_dim;
    const real *rs[MAX_DISTANCES];
    for (int i = 0; i < p->all; i++) rs[i] = p->source[i].rs;
    select_products(p);
    m->ops->row_rstd(T, D, p->t, m->config.norm_eps, c->rt);
    m->ops->select(T, p->all, a, c->select_query, c->select_key, c->rt, rs, c->alpha + p->row0 * p->all);
    if (m->rows_divided) axis_gather_rows(m->tensor, c->alpha, m->T, p->all);
}

/* The own rows of d [rows, width] as the block of a projected source's gradient: of other rows these are all
 * the terms. */
static void put_block(const struct delta_pass *p, const real *d, long ld, long width, real *block) {
    const struct model *m = p->m;
    m->ops->zero(m->T * width, block);
    m->ops->copy_columns(p->rows, width, d, ld, block + p->row0 * width, width);
}

/* From m->delta->dalpha: of the connections that are elsewhere it has zeros. */
static void select_backward(const struct delta_pass *full) {
    struct model *m = full->m;
    struct delta_pass own = on_own_rows(full), *p = &own;
    struct connections *c = p->c;
    long T = p->rows, at = p->row0 * p->all, D = m->config.hidden_size, a = m->config.delta.attention_dim,
         ld = p->all * a;
    real *query = c->select_query, *keys = c->select_key; /* become their gradients */
    const real *rs[MAX_DISTANCES];
    for (int i = 0; i < p->all; i++) rs[i] = p->source[i].rs;
    if (m->rows_divided) axis_sum_rows(m->tensor, m->delta->dalpha, m->T, p->all);
    m->ops->select_back(T, p->all, a, D, query, keys, c->rt, rs, c->alpha + at, m->delta->dalpha + at,
                        m->delta->ct, m->delta->cs);
    m->ops->gemm('N', 'N', T, D, a, 1, query, a, c->select.w, D, 1, p->dt, D);
    m->ops->gemm('T', 'N', a, D, T, 1, query, a, p->t, D, 1, c->select.g, D);
    m->ops->add_scaled_rows(T, D, m->delta->ct, p->t, p->dt);
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        const real *key = keys + i * a, *cs = m->delta->cs + i * T;
        if (source->s) {
            m->ops->gemm('N', 'N', T, D, a, 1, key, ld, c->select.w, D, 1, source->ds, D);
            m->ops->gemm('T', 'N', a, D, T, 1, key, ld, source->s, D, 1, c->select.g, D);
            m->ops->add_scaled_rows(T, D, cs, source->s, source->ds);
        } else {
            put_block(p, key, ld, a,
                      source->projected_gradient + projected_select(m, m->T));
            put_block(p, cs, 1, 1, source->projected_gradient + projected_rstd(m, m->T));
        }
    }
}

/* A contribution's weight is its share, times its mix. The shares of all tokens are alike but with
 * `attention`: then this rank's are every step-th column of alpha [T, all]. */
static real even_share(const struct delta_pass *p) {
    return p->m->config.delta.aggregate == AGGREGATE_MEAN ? (real)1 / (real)p->all : 1;
}

static bool selects(const struct delta_pass *p) {
    return p->m->config.delta.aggregate == AGGREGATE_ATTENTION;
}

void aggregate_forward(struct delta_pass *p) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    if (selects(p)) select_forward(p);
    m->ops->connection_weights(m->T, p->n, selects(p) ? c->alpha + m->delta->part.first : NULL, p->all,
                               m->delta->part.step, even_share(p), c->mix.w, c->weight);
}

void aggregate_recompute(struct delta_pass *p) {
    struct delta_pass own = on_own_rows(p);
    if (selects(p)) select_products(&own);
}

void aggregate_backward(struct delta_pass *p) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    const struct delta_part *part = &m->delta->part;
    if (selects(p) && (part->step > 1 || !p->works)) m->ops->zero(m->T * p->all, m->delta->dalpha);
    if (p->works)
        m->ops->connection_weights_back(m->T, p->n, selects(p) ? c->alpha + part->first : NULL, p->all,
                                        part->step, even_share(p), c->mix.w, m->delta->dweight, c->mix.g,
                                        selects(p) ? m->delta->dalpha + part->first : NULL);
    if (selects(p)) select_backward(p);
}

/* ---------------------------------------------------------------------------------------------- multihead */

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
    m->ops->gemm('N', 'T', T, W, D, 1, p->t, D, c->query.w, D, 0, c->select_query, W);
    m->ops->gemm('N', 'T', T * p->all, W, D, 1, c->c, D, c->key.w, D, 0, c->select_key, W);
}

void multihead_forward(struct delta_pass *p, real *z) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D;
    bool divided = W < D;
    real *out = divided ? m->delta->columns_out : z;
    multihead_products(p);
    if (divided) m->ops->zero(T * W, out);
    m->ops->multihead(T, p->all, W, m->delta->part.heads, c->select_query, c->select_key,
                      own_columns(p, c->c), c->alpha, out);
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
    real *query = c->select_query, *key = c->select_key; /* become their gradients */
    real *dc = divided ? m->delta->columns_dc : m->delta->dc;
    const real *out = dz;
    if (divided) {
        m->ops->copy_columns(T, W, dz + part->column, D, m->delta->columns_out, W);
        out = m->delta->columns_out;
    }
    m->ops->multihead_back(T, p->all, W, part->heads, query, key, own_columns(p, c->c), c->alpha, out, dc);
    if (divided) {
        m->ops->zero(T * p->all * D, m->delta->dc);
        m->ops->copy_columns(T * p->all, W, dc, W, m->delta->dc + part->column, D);
    }
    m->ops->gemm('N', 'N', T * p->all, D, W, 1, key, W, c->key.w, D, 1, m->delta->dc, D);
    m->ops->gemm('T', 'N', W, D, T * p->all, 1, key, W, c->c, D, 1, c->key.g, D);
    m->ops->gemm('T', 'N', W, D, T, 1, query, W, p->t, D, 1, c->query.g, D);
    m->ops->gemm('N', 'N', T, D, W, 1, query, W, c->query.w, D, 1, p->dt,
                 D); /* dz is used up where dt is dz */
    axis_sum(m->tensor, m->delta->dc, T * p->all * D);
}
