/* The aggregate `attention` (model.md, 4): shares are a softmax over connections of A t̂ · A ŝ, for which
 * target and sources are divided by their rms. */
#include "model/delta/private.h"

enum { SELECT };  /* its leaf: A [a, D] */
enum { MAP_KEY }; /* its map */

struct selection {
    int policy;
    real *query, *key; /* [R, a], [R, all, a] */
    real *rt;          /* [R] inverse rms of the target */
};

/* Queries of the targets and keys of the sources. */
static void products(const struct delta_pass *p) {
    const struct model *m = p->m;
    const struct selection *s = p->c->aggregate;
    long D = m->config.hidden_size, a = m->config.delta.attention_dim;
    m->ops->gemm('N', 'T', p->rows, a, D, 1, p->t, D, p->c->layer_leaf[SELECT].w, D, 0, s->query, a);
    map_sources(p, MAP_KEY, s->key);
}

static void weigh(const struct delta_pass *p, real *alpha) {
    const struct model *m = p->m;
    const struct selection *s = p->c->aggregate;
    const real *rs[MAX_DISTANCES];
    for (int i = 0; i < p->all; i++) rs[i] = p->source[i].rs;
    products(p);
    m->ops->row_rstd(p->rows, m->config.hidden_size, p->t, m->config.norm_eps, s->rt);
    m->ops->select(p->rows, p->all, m->config.delta.attention_dim, s->query, s->key, s->rt, rs, alpha);
}

static void weigh_back(const struct delta_pass *p, const real *alpha, real *dalpha) {
    struct model *m = p->m;
    const struct selection *s = p->c->aggregate;
    struct tensor w = p->c->layer_leaf[SELECT];
    long T = p->rows, D = m->config.hidden_size, a = m->config.delta.attention_dim;
    real *query = s->query, *key = s->key; /* become their gradients */
    const real *rs[MAX_DISTANCES];
    for (int i = 0; i < p->all; i++) rs[i] = p->source[i].rs;
    m->ops->select_back(T, p->all, a, D, query, key, s->rt, rs, alpha, dalpha, m->delta->ct, m->delta->cs);
    m->ops->gemm('N', 'N', T, D, a, 1, query, a, w.w, D, 1, p->dt, D);
    weight_gradient_again(m, a, D, T, 1, query, a, p->t, D, w.g, D);
    m->ops->add_scaled_rows(T, D, m->delta->ct, p->t, p->dt);
    map_sources_back(p, MAP_KEY, key);
    source_rms_back(p, m->delta->cs);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    leaf[SELECT] = leaf_matrix("select.weight", SPLIT_NONE, config->delta.attention_dim, config->hidden_size,
                               LEAF_WIDTH);
    leaf[SELECT].projects = true;
    return SELECT + 1;
}

static double flops(const struct model_config *config, int n) {
    return 2.0 * config->hidden_size * config->delta.attention_dim * (n + 1); /* keys and a query */
}

static const struct conflict *conflict(const struct model_config *config, int tensor) {
    static const struct conflict dim = {"aggregate attention needs an attention_dim of at least 1",
                                        {"model.delta.aggregate", "model.delta.attention_dim"}};
    (void)tensor;
    return config->delta.attention_dim < 1 ? &dim : NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct selection *s = c->aggregate, *shared = m->delta->shared->aggregate;
    long all = c->n, rows = m->rows_max, a = m->config.delta.attention_dim;
    (void)T;
    s->policy = c->policy;
    SAVE_BF16(m, s, shared, query, rows * a, POLICY_FULL);
    SAVE_BF16(m, s, shared, key, rows * all * a, POLICY_FULL);
    SAVE(m, s, shared, rt, rows, POLICY_NO_BACKWARD);
}

const struct aggregate aggregate_attention = {.name = "attention",
                                              .leaves = leaves,
                                              .flops = flops,
                                              .conflict = conflict,
                                              .map = {[MAP_KEY] = SELECT},
                                              .maps = 1,
                                              .rms = true,
                                              .saved_bytes = sizeof(struct selection),
                                              .lay_out = lay_out,
                                              .weigh = weigh,
                                              .weigh_back = weigh_back,
                                              .weigh_again = products};
