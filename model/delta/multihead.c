/* The aggregate `multihead` (model.md, 4), which mixes the contributions themselves, a head at a time. Over
 * the tensor axis heads are divided: W columns and H heads are this rank's. */
#include "model/delta/private.h"

enum { QUERY, KEY }; /* its leaves: [W, D] each */

struct multihead {
    int policy;
    real *query, *key; /* [T, W], [T, all, W] */
    real *alpha;       /* [T, all, H] */
};

struct scratch {
    real *dc; /* [T, all, W] with several tensor ranks */
};

static long heads(const struct model *m) {
    return m->config.delta.attention_heads / m->tensor->size;
}

/* This rank's columns of the contributions, compact in scratch; themselves where it has all. */
static const real *own_columns(const struct delta_pass *p) {
    const struct model *m = p->m;
    const real *c = p->c->contribution;
    long D = m->config.hidden_size, W = m->delta->part.D;
    if (W == D) return c;
    m->ops->copy_columns(m->T * p->all, W, c + m->delta->part.column, D, m->delta->columns_c, W);
    return m->delta->columns_c;
}

static void products(struct delta_pass *p) {
    const struct model *m = p->m;
    const struct multihead *h = p->c->aggregate;
    const struct tensor *w = p->c->layer_leaf;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D;
    m->ops->gemm('N', 'T', T, W, D, 1, p->t, D, w[QUERY].w, D, 0, h->query, W);
    m->ops->gemm('N', 'T', T * p->all, W, D, 1, p->c->contribution, D, w[KEY].w, D, 0, h->key, W);
}

static void combine(struct delta_pass *p, real *z) {
    const struct model *m = p->m;
    const struct multihead *h = p->c->aggregate;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D;
    bool divided = W < D;
    real *out = divided ? m->delta->columns_out : z;
    products(p);
    if (divided) m->ops->zero(T * W, out);
    m->ops->multihead(T, p->all, W, heads(m), h->query, h->key, own_columns(p), h->alpha, out);
    if (!divided) return;
    axis_gather_columns(m->tensor, out, T, W, m->delta->mean);
    m->ops->add(m->rows * D, own_rows(m, m->delta->mean), z);
}

/* The gradient of the contributions through this rank's heads: columns of its own from their sum, all from
 * the keys. */
static void combine_back(struct delta_pass *p, const real *dz, real *dc) {
    struct model *m = p->m;
    const struct multihead *h = p->c->aggregate;
    const struct scratch *scratch = m->delta->aggregate_scratch;
    const struct tensor *w = p->c->layer_leaf;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.D, column = m->delta->part.column;
    bool divided = W < D;
    real *query = h->query, *key = h->key; /* become their gradients */
    real *own = divided ? scratch->dc : dc;
    const real *out = dz;
    if (divided) {
        m->ops->copy_columns(T, W, dz + column, D, m->delta->columns_out, W);
        out = m->delta->columns_out;
    }
    measure_head_effects(p, W, heads(m), own_columns(p), h->alpha, out);
    m->ops->multihead_back(T, p->all, W, heads(m), query, key, own_columns(p), h->alpha, out, own);
    if (divided) {
        m->ops->zero(T * p->all * D, dc);
        m->ops->copy_columns(T * p->all, W, own, W, dc + column, D);
    }
    m->ops->gemm('N', 'N', T * p->all, D, W, 1, key, W, w[KEY].w, D, 1, dc, D);
    weight_gradient(m, NO_WEIGHT_ID, W, D, T * p->all, 1, key, W, p->c->contribution, D, w[KEY].g, D);
    weight_gradient_again(m, W, D, T, 1, query, W, p->t, D, w[QUERY].g, D);
    m->ops->gemm('N', 'N', T, D, W, 1, query, W, w[QUERY].w, D, 1, p->dt,
                 D); /* dz is used up where dt is dz */
    axis_sum(m->tensor, dc, T * p->all * D);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    long D = config->hidden_size;
    leaf[QUERY] = leaf_matrix("query.weight", SPLIT_ROWS, D, D, LEAF_WIDTH);
    leaf[KEY] = leaf_matrix("key.weight", SPLIT_ROWS, D, D, LEAF_WIDTH);
    leaf[KEY].joined = true;
    return KEY + 1;
}

static double flops(const struct model_config *config, int n) {
    double D = config->hidden_size;
    return 2 * D * D * (n + 1); /* keys and a query */
}

static const struct conflict *conflict(const struct model_config *config, int tensor) {
    static const struct conflict
        divisor = {"aggregate multihead needs attention_heads of at least 1 that divide hidden_size",
                   {"model.delta.aggregate", "model.delta.attention_heads", "model.hidden_size"}},
        evenly = {"aggregate multihead shares its heads evenly: tensor must divide attention_heads",
                  {"mesh.tensor", "model.delta.aggregate", "model.delta.attention_heads"}};
    int H = config->delta.attention_heads;
    if (H < 1 || config->hidden_size % H) return &divisor;
    return H % tensor ? &evenly : NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct multihead *h = c->aggregate, *shared = m->delta->shared->aggregate;
    long all = c->n, W = m->delta->part.D;
    h->policy = c->policy;
    SAVE_BF16(m, h, shared, query, T * W, POLICY_FULL);
    SAVE_BF16(m, h, shared, key, T * all * W, POLICY_FULL);
    SAVE(m, h, shared, alpha, T * all * heads(m), POLICY_NO_BACKWARD);
}

static void lay_out_scratch(struct model *m, long T, long all) {
    struct scratch *scratch = m->delta->aggregate_scratch;
    if (m->training && m->tensor->size > 1) scratch->dc = take(&m->scratch, T * all * m->delta->part.D);
}

const struct aggregate aggregate_multihead = {.name = "multihead",
                                              .leaves = leaves,
                                              .flops = flops,
                                              .conflict = conflict,
                                              .saved_bytes = sizeof(struct multihead),
                                              .scratch_bytes = sizeof(struct scratch),
                                              .lay_out = lay_out,
                                              .lay_out_scratch = lay_out_scratch,
                                              .combine = combine,
                                              .combine_back = combine_back,
                                              .combine_again = products};
