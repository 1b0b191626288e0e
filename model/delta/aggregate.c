/* Aggregation over the active connections of a layer (model.md, 4). Every aggregate but multihead is a weight
 * per token and connection, into which the connection's `mix` folds (multihead.c). Over the tensor axis
 * selection's weights are computed by all ranks alike, or where rows are divided by each rank for its own. */
#include "model/delta/private.h"

/* Queries of the targets and keys of the sources, of the pass's rows: the own ones. */
static void select_products(struct delta_pass *p) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = p->rows, D = m->config.hidden_size, a = m->config.delta.attention_dim, ld = p->all * a;
    m->ops->gemm('N', 'T', T, a, D, 1, p->t, D, c->selection.project.w, D, 0, c->selection.query, a);
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        real *key = c->selection.key + i * a;
        if (source->s)
            m->ops->gemm('N', 'T', T, a, D, 1, source->s, D, c->selection.project.w, D, 0, key, ld);
        else
            m->ops->copy_columns(T, a, source->projected + projected_select(m, m->T) + p->row0 * a, a, key,
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
    m->ops->row_rstd(T, D, p->t, m->config.norm_eps, c->selection.rt);
    m->ops->select(T, p->all, a, c->selection.query, c->selection.key, c->selection.rt, rs,
                   c->selection.alpha + p->row0 * p->all);
    if (m->rows_divided) axis_gather_rows(m->tensor, c->selection.alpha, m->T, p->all);
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
    real *query = c->selection.query, *keys = c->selection.key; /* become their gradients */
    const real *rs[MAX_DISTANCES];
    for (int i = 0; i < p->all; i++) rs[i] = p->source[i].rs;
    if (m->rows_divided) axis_sum_rows(m->tensor, m->delta->dalpha, m->T, p->all);
    m->ops->select_back(T, p->all, a, D, query, keys, c->selection.rt, rs, c->selection.alpha + at,
                        m->delta->dalpha + at, m->delta->ct, m->delta->cs);
    m->ops->gemm('N', 'N', T, D, a, 1, query, a, c->selection.project.w, D, 1, p->dt, D);
    m->ops->gemm('T', 'N', a, D, T, 1, query, a, p->t, D, 1, c->selection.project.g, D);
    m->ops->add_scaled_rows(T, D, m->delta->ct, p->t, p->dt);
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        const real *key = keys + i * a, *cs = m->delta->cs + i * T;
        if (source->s) {
            m->ops->gemm('N', 'N', T, D, a, 1, key, ld, c->selection.project.w, D, 1, source->ds, D);
            m->ops->gemm('T', 'N', a, D, T, 1, key, ld, source->s, D, 1, c->selection.project.g, D);
            m->ops->add_scaled_rows(T, D, cs, source->s, source->ds);
        } else {
            put_block(p, key, ld, a, source->projected_gradient + projected_select(m, m->T));
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

/* How many of this rank's connections one operation takes: all of them, where their mixes are neighbours and
 * their columns of alpha every step-th; else one. */
static int at_once(const struct delta_pass *p) {
    const int *among = p->mine->among;
    if (neighbours(p, 0) != p->n) return 1;
    for (int i = 1; i < p->n; i++)
        if (among[i] - among[i - 1] != p->m->delta->part.step) return 1;
    return p->n;
}

/* The column of a connection in what selection has of all, x [T, all]; NULL without it. */
static real *own_column(const struct delta_pass *p, int i, real *x) {
    return selects(p) ? x + p->mine->among[i] : NULL;
}

void aggregate_forward(struct delta_pass *p) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    if (selects(p)) select_forward(p);
    for (int i = 0, n = at_once(p); i < p->n; i += n) {
        real *weight = n == p->n ? c->weight : c->rms; /* [T, n]: `fill` comes later, and fills rms */
        m->ops->connection_weights(m->T, n, own_column(p, i, c->selection.alpha), p->all, m->delta->part.step,
                                   even_share(p), own_tensor(p, c->mix, i, 1).w, weight);
        if (n < p->n) m->ops->copy_columns(m->T, n, weight, n, c->weight + i, p->n);
    }
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
    for (int i = 0, n = at_once(p); p->works && i < p->n; i += n) {
        struct tensor mix = own_tensor(p, c->mix, i, 1);
        real *dweight = n == p->n ? m->delta->dweight : m->delta->k; /* [T, n] */
        if (n < p->n) m->ops->copy_columns(m->T, n, m->delta->dweight + i, p->n, dweight, n);
        m->ops->connection_weights_back(m->T, n, own_column(p, i, c->selection.alpha), p->all, part->step,
                                        even_share(p), mix.w, dweight, mix.g,
                                        own_column(p, i, m->delta->dalpha));
    }
    if (selects(p)) select_backward(p);
}
