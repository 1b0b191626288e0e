/* Aggregation over the active connections of a layer (model.md, 4). Every aggregate but multihead is a weight
 * per token and connection, into which the connection's `mix` folds; multihead mixes the contributions
 * themselves. */
#include "model/internal.h"

static real mix(const struct connections *c, int slot) {
    return c->mix.w ? c->mix.w[slot] : 1;
}

static void select_forward(struct delta_pass *p) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, a = m->config.delta.attention_dim;
    m->ops->gemm('N', 'T', T, a, D, 1, p->t, D, c->select.w, D, 0, c->select_query, a);
    for (int i = 0; i < p->n; i++)
        m->ops->gemm('N', 'T', T, a, D, 1, p->s[i], D, c->select.w, D, 0, c->select_key + i * a, p->n * a);
    m->ops->row_rstd(T, D, p->t, m->config.norm_eps, c->rt);
    m->ops->select(T, p->n, a, c->select_query, c->select_key, c->rt, p->rs, c->alpha);
}

static void select_backward(struct delta_pass *p) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, a = m->config.delta.attention_dim;
    real *query = c->select_query, *key = c->select_key; /* become their gradients */
    m->ops->select_back(T, p->n, a, D, query, key, c->rt, p->rs, c->alpha, m->dweight, m->ct, m->cs);
    m->ops->gemm('N', 'N', T, D, a, 1, query, a, c->select.w, D, 1, p->dt, D);
    m->ops->gemm('T', 'N', a, D, T, 1, query, a, p->t, D, 1, c->select.g, D);
    m->ops->add_scaled_rows(T, D, m->ct, p->t, p->dt);
    for (int i = 0; i < p->n; i++) {
        m->ops->gemm('N', 'N', T, D, a, 1, key + i * a, p->n * a, c->select.w, D, 1, p->ds[i], D);
        m->ops->gemm('T', 'N', a, D, T, 1, key + i * a, p->n * a, p->s[i], D, 1, c->select.g, D);
        m->ops->add_scaled_rows(T, D, m->cs + i * T, p->s[i], p->ds[i]);
    }
}

/* The aggregate's own weight of a contribution, without its mix. */
static real share(const struct delta_pass *p, long t, int slot) {
    switch (p->m->config.delta.aggregate) {
    case AGGREGATE_MEAN:
        return (real)1 / (real)p->n;
    case AGGREGATE_ATTENTION:
        return p->c->alpha[t * p->n + slot];
    default:
        return 1;
    }
}

void aggregate_forward(struct delta_pass *p) {
    if (p->m->config.delta.aggregate == AGGREGATE_ATTENTION) select_forward(p);
    for (long t = 0; t < p->m->T; t++)
        for (int i = 0; i < p->n; i++) p->c->weight[t * p->n + i] = share(p, t, i) * mix(p->c, i);
}

void aggregate_backward(struct delta_pass *p) {
    struct connections *c = p->c;
    real *dweight = p->m->dweight;
    for (int i = 0; i < p->n; i++) {
        double dmix = 0;
        for (long t = 0; t < p->m->T; t++) {
            real *d = &dweight[t * p->n + i];
            dmix += (double)*d * share(p, t, i);
            *d *= mix(c, i); /* now the gradient of the share */
        }
        if (c->mix.g) c->mix.g[i] += (real)dmix;
    }
    if (p->m->config.delta.aggregate == AGGREGATE_ATTENTION) select_backward(p);
}

void multihead_forward(struct delta_pass *p, real *z) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size;
    m->ops->gemm('N', 'T', T, D, D, 1, p->t, D, c->query.w, D, 0, c->select_query, D);
    m->ops->gemm('N', 'T', T * p->n, D, D, 1, c->c, D, c->key.w, D, 0, c->select_key, D);
    m->ops->multihead(T, p->n, D, m->config.delta.attention_heads, c->select_query, c->select_key, c->c,
                      c->alpha, z);
}

void multihead_backward(struct delta_pass *p, const real *dz) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size;
    real *query = c->select_query, *key = c->select_key; /* become their gradients */
    m->ops->multihead_back(T, p->n, D, m->config.delta.attention_heads, query, key, c->c, c->alpha, dz,
                           m->dc);
    m->ops->gemm('N', 'N', T * p->n, D, D, 1, key, D, c->key.w, D, 1, m->dc, D);
    m->ops->gemm('T', 'N', D, D, T * p->n, 1, key, D, c->c, D, 1, c->key.g, D);
    m->ops->gemm('T', 'N', D, D, T, 1, query, D, p->t, D, 1, c->query.g, D);
    m->ops->gemm('N', 'N', T, D, D, 1, query, D, c->query.w, D, 1, p->dt,
                 D); /* dz is used up where dt is dz */
}
