/* The gate `bottleneck` (model.md, 3): u = Wp δ, g = σ(W2 silu(W1 (s+t)/2 + b1) + b2), c = Wo (u ⊙ s(d) g).
 *
 * All connections of a layer are computed side by side in [T, n·Hd]; the weights of the aggregate fold into u
 * ⊙ g, so that one GEMM over n·Hd adds all contributions and none is formed by itself. Where channels are
 * divided among ranks, Hd counts this rank's and W1 is the same on all: what comes out of Wo are its terms of
 * a sum. */
#include "model/delta/private.h"

/* The leaves in order, each stacked over the rank's n connections: Wp [n·Hd, D], W1 [n·G, D], b1, W2 [n][Hd,
 * G], b2, Wo [n·Hd, D] (transposed). */
enum { PROJ, GATE_IN, GATE_IN_BIAS, GATE_OUT, GATE_OUT_BIAS, OUT };
/* The maps in order: u and the first product of the MLP. */
enum { MAP_U, MAP_X };

struct bottleneck {
    int policy;
    real *u;         /* [T, n·Hd] */
    real *x, *h;     /* [T, n·G] the MLP before and after silu */
    real *gate;      /* [T, n·Hd] */
    real *v;         /* [T, n·Hd] weighted u ⊙ g */
    real *extra;     /* [T, n·Hd] gradient of the sparsity term; NULL without a regulariser */
    real *out_extra; /* the same, on Wo: [n][Hd, Hd], to be multiplied by it, or of divided channels
                        [n][Hd, D] */
};

struct sizes {
    long T, D, Hd, G, n, wide, narrow; /* wide = n·Hd, narrow = n·G: the row distances */
};

static struct sizes sizes(const struct delta_pass *p) {
    const struct delta_config *d = &p->m->config.delta;
    long Hd = own_part(p->m, d->hidden), G = d->gate_hidden;
    return (struct sizes){p->m->T, p->m->config.hidden_size, Hd, G, p->n, p->n * Hd, p->n * G};
}

static void connection_scales(const struct delta_pass *p, real scale[MAX_DISTANCES]) {
    for (int i = 0; i < p->n; i++) scale[i] = (real)own(p, i)->edge->scale;
}

/* The sparsity term of connection i from v [T, Hd] (unweighted): ‖Wo v‖² = vᵀ (WoᵀWo) v, so no contribution
 * is formed. Its gradients depend on the forward pass alone: the one on v is kept in `extra`, the one on Wo
 * in `out_extra`, as its factor Σ k v vᵀ. */
static void measure_by_gram(struct delta_pass *p, int i, const real *v, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    const real *wo = own_tensor(p, c->leaf[OUT], i, z.Hd * z.D).w;
    real *kv = m->delta->kv + i * z.Hd, *q = p->sparsity ? b->extra + i * z.Hd : kv;
    m->ops->gemm('N', 'T', z.Hd, z.Hd, z.D, 1, wo, z.D, wo, z.D, 0, m->delta->gram, z.Hd);
    m->ops->gemm('N', 'N', z.T, z.Hd, z.Hd, 1, v, z.wide, m->delta->gram, z.Hd, 0, q, z.wide);
    m->ops->gram_rms(z.T, z.Hd, z.D, v, p->sparsity, m->counts, q, p->sparsity ? kv : NULL, z.wide,
                     c->rms + i * z.T);
    if (p->sparsity)
        m->ops->gemm('T', 'N', z.Hd, z.Hd, z.T, 1, kv, z.wide, v, z.wide, 0, b->out_extra + i * z.Hd * z.Hd,
                     z.Hd);
}

/* The same where the channels are divided: then every rank's v is in c, which is formed, and kept is all of
 * Wo's gradient Σ v (k c)ᵀ. */
static void measure_by_sum(struct delta_pass *p, int i, const real *v, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    const real *wo = own_tensor(p, c->leaf[OUT], i, z.Hd * z.D).w;
    real *sum = m->delta->mean; /* c, then k·c */
    m->ops->gemm('N', 'N', z.T, z.D, z.Hd, 1, v, z.wide, wo, z.D, 0, sum, z.D);
    axis_sum(m->tensor, sum, z.T * z.D);
    m->ops->gram_rms(z.T, z.D, z.D, sum, p->sparsity, m->counts, sum, NULL, z.D, c->rms + i * z.T);
    if (!p->sparsity) return;
    m->ops->gemm('N', 'T', z.T, z.Hd, z.D, 1, sum, z.D, wo, z.D, 0, b->extra + i * z.Hd, z.wide);
    m->ops->gemm('T', 'N', z.Hd, z.D, z.T, 1, v, z.wide, sum, z.D, 0, b->out_extra + i * z.Hd * z.D, z.D);
}

/* From the unweighted v: the root mean squares, and the gradients where there are any. */
static void measure_sparsity(struct delta_pass *p, const real *v, struct sizes z) {
    bool divided = p->m->delta->part.channels;
    for (int i = 0; i < p->n; i++) (divided ? measure_by_sum : measure_by_gram)(p, i, v + i * z.Hd, z);
}

static void count_measures(struct delta_pass *p, struct sizes z) {
    const struct model *m = p->m;
    const struct delta_part *part = &m->delta->part;
    const struct bottleneck *b = p->c->gate;
    if (!part->channels || part->leads) {
        m->ops->add_up(p->n * z.T, p->c->rms, &p->sums->sparsity);
        measure_contributions(p);
    }
    m->ops->binary_entropy(z.T, z.wide, b->gate, z.wide, 1 / (double)m->config.delta.hidden, m->counts,
                           &p->sums->entropy);
    for (int i = 0; i < p->n; i++)
        measure_gates(p, i, z.Hd, b->gate + i * z.Hd, z.wide, m->delta->dv); /* the unweighted v is used up */
}

/* What the forward pass has kept of Wo's gradient. */
static void sparsity_backward(struct delta_pass *p, struct sizes z) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    long each = z.Hd * z.D;
    for (int i = 0, n; i < p->n; i += n) {
        struct tensor wo = own_tensor(p, c->leaf[OUT], i, each);
        n = m->delta->part.channels ? neighbours(p, i) : 1;
        if (m->delta->part.channels)
            m->ops->add(n * each, b->out_extra + i * each, wo.g);
        else
            m->ops->gemm('N', 'N', z.Hd, z.D, z.Hd, 1, b->out_extra + i * z.Hd * z.Hd, z.Hd, wo.w, z.D, 1,
                         wo.g, z.D);
    }
}

/* Are the sparsity term's gradients kept at a recompute policy? They are dropped where they can be had from v
 * alone. */
static bool keeps_extra(const struct model *m, int policy) {
    return policy < (m->delta->part.channels ? POLICY_FULL : POLICY_SELECTIVE);
}

/* Gates are dropped in what they multiply: of all connections x [T, n·Hd], in place. */
static void drop(const struct delta_pass *p, struct sizes z, real *x) {
    const struct delta_part *part = &p->m->delta->part;
    long column = part->channels ? p->m->tensor->index * z.Hd : 0;
    for (int i = 0; drops_gates(p) && i < p->n; i++)
        drop_gates(p, i, z.Hd, column, x + i * z.Hd, z.wide, x + i * z.Hd);
}

static void fill(struct delta_pass *p, bool maps) {
    struct model *m = p->m;
    struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    const struct ops *ops = m->ops;
    struct sizes z = sizes(p);
    real scale[MAX_DISTANCES];
    connection_scales(p, scale);
    if (maps) {
        map_forward(p, MAP_U, b->u);
        map_forward(p, MAP_X, b->x);
        ops->bias_silu(z.T, z.narrow, active_stack(p, c->leaf[GATE_IN_BIAS].w, z.G, m->delta->dv), b->x, b->h);
    } else {
        ops->silu(z.T * z.narrow, b->x, b->h);
    }
    for (int i = 0; i < p->n; i++)
        ops->gemm('N', 'T', z.T, z.Hd, z.G, 1, b->h + i * z.G, z.narrow,
                  own_tensor(p, c->leaf[GATE_OUT], i, z.Hd * z.G).w, z.G, 0, b->gate + i * z.Hd, z.wide);
    const real *r = row_factor(p, 0), *bias = active_stack(p, c->leaf[GATE_OUT_BIAS].w, z.Hd, m->delta->kv);
    if (p->measure) { /* v without weights, from a copy, so that measuring changes no bit of the rest */
        ops->copy(z.T * z.wide, b->gate, b->v);
        ops->bottleneck_gate(z.T, z.n, z.Hd, bias, b->u, r, scale, NULL, b->v, m->delta->dv);
        drop(p, z, m->delta->dv);
    }
    ops->bottleneck_gate(z.T, z.n, z.Hd, bias, b->u, r, scale, c->weight, b->gate, b->v);
    drop(p, z, b->v);
    if (!p->measure) return;
    if (!p->recomputed || (p->sparsity && !keeps_extra(m, c->policy))) measure_sparsity(p, m->delta->dv, z);
    if (!p->recomputed) count_measures(p, z);
}

static void contribute(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    const struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    const struct ops *ops = p->m->ops;
    struct sizes z = sizes(p);
    for (int i = 0, n; i < p->n; i += n) {
        struct tensor wo = own_tensor(p, c->leaf[OUT], i, z.Hd * z.D);
        n = step ? 1 : neighbours(p, i);
        ops->gemm('N', 'N', z.T, z.D, n * z.Hd, 1, b->v + i * z.Hd, z.wide, wo.w, z.D, add || (i && !step),
                  out + p->mine->among[i] * step, ldo);
    }
}

/* Gradients of v and Wo from those of the contributions; done with dout afterwards. */
static void output_backward(struct delta_pass *p, const real *dout, long ldo, long step, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    for (int i = 0, n; i < p->n; i += n) {
        struct tensor wo = own_tensor(p, c->leaf[OUT], i, z.Hd * z.D);
        const real *d = dout + p->mine->among[i] * step, *v = b->v + i * z.Hd;
        n = step ? 1 : neighbours(p, i);
        m->ops->gemm('N', 'T', z.T, n * z.Hd, z.D, 1, d, ldo, wo.w, z.D, 0, m->delta->dv + i * z.Hd, z.wide);
        if (m->config.delta.regularizer == REGULARIZER_NONE)
            weight_gradient_again(m, n * z.Hd, z.D, z.T, 1, v, z.wide, d, ldo, wo.g, z.D);
        else /* what the sparsity term adds to it comes before, in every micro-batch */
            m->ops->gemm('T', 'N', n * z.Hd, z.D, z.T, 1, v, z.wide, d, ldo, 1, wo.g, z.D);
    }
}

static void backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct model *m = p->m;
    struct connections *c = p->c;
    struct bottleneck *b = p->c->gate;
    const struct ops *ops = m->ops;
    struct sizes z = sizes(p);
    real scale[MAX_DISTANCES];
    connection_scales(p, scale);
    if (p->sparsity) sparsity_backward(p, z);
    output_backward(p, dout, ldo, step, z);
    drop(p, z, m->delta->dv);
    if (p->sparsity) drop(p, z, b->extra);
    ops->bottleneck_gate_back(z.T, z.n, z.Hd, b->u, row_factor(p, 0), scale, c->weight,
                              p->sparsity ? b->extra : NULL, p->entropy / (double)m->config.delta.hidden,
                              m->counts, b->gate, m->delta->dv, m->delta->dweight,
                              m->config.delta.normalize ? m->delta->dr : NULL);
    add_bias_gradient(p, b->gate, z.Hd, c->leaf[GATE_OUT_BIAS].g);
    for (int i = 0; i < p->n; i++) {
        const real *dz = b->gate + i * z.Hd;
        struct tensor w2 = own_tensor(p, c->leaf[GATE_OUT], i, z.Hd * z.G);
        weight_gradient(m, NO_WEIGHT_ID, z.Hd, z.G, z.T, 1, dz, z.wide, b->h + i * z.G, z.narrow, w2.g, z.G);
        ops->gemm('N', 'N', z.T, z.G, z.Hd, 1, dz, z.wide, w2.w, z.G, 0, m->delta->dx + i * z.G, z.narrow);
    }
    map_backward(p, MAP_U, m->delta->dv);
    struct delta_pass part = map_sum(p, MAP_X, m->delta->dx);
    real *dx = m->delta->dx + part.row0 * z.narrow;
    ops->silu_back(part.rows * z.narrow, b->x + part.row0 * z.narrow, dx, dx);
    add_bias_gradient(&part, dx, z.G, c->leaf[GATE_IN_BIAS].g);
    map_backward(&part, MAP_X, dx);
    for (int i = 0; i < p->n && m->config.delta.normalize; i++) {
        ops->zero(z.T, m->delta->k);
        normalize_backward(p, i, m->delta->dr + i * z.T, m->delta->k);
        ops->delta_spread(z.T, z.D, NULL, m->delta->k, p->t, own(p, i)->s, p->dt, own(p, i)->ds);
    }
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    long D = config->hidden_size, Hd = config->delta.hidden, G = config->delta.gate_hidden;
    leaf[PROJ] = leaf_matrix("delta_proj.weight", SPLIT_ROWS, Hd, D, LEAF_WIDTH);
    leaf[GATE_IN] = leaf_matrix("gate_in.weight", SPLIT_NONE, G, D, LEAF_WIDTH);
    leaf[GATE_IN_BIAS] = leaf_vector("gate_in.bias", SPLIT_NONE, G, 0);
    leaf[GATE_OUT] = leaf_matrix("gate_out.weight", SPLIT_ROWS, Hd, G, LEAF_WIDTH);
    leaf[GATE_OUT_BIAS] = leaf_vector("gate_out.bias", SPLIT_ROWS, Hd, 0);
    leaf[OUT] = leaf_matrix("output_proj.weight", SPLIT_COLUMNS, D, Hd, 0);
    leaf[PROJ].projects = leaf[GATE_IN].projects = leaf[OUT].transposed = true;
    return OUT + 1;
}

static long gates(const struct model_config *config) {
    return config->delta.hidden;
}

static double flops(const struct model_config *config) {
    double D = config->hidden_size, Hd = config->delta.hidden, G = config->delta.gate_hidden;
    return 2 * (2 * D * Hd + D * G + G * Hd);
}

static const struct conflict *conflict(const struct model_config *config, int ranks) {
    static const struct conflict widths = {
        "bottleneck connections need a width of at least 1 in both",
        {"model.delta.kind", "model.delta.hidden", "model.delta.gate_hidden"}};
    static const struct conflict divided = {
        "tensor ranks share a bottleneck's channels evenly: tensor must divide hidden; or use mesh.delta "
        "connection",
        {"mesh.tensor", "mesh.delta", "model.delta.kind", "model.delta.hidden"}};
    if (config->delta.hidden < 1 || config->delta.gate_hidden < 1) return &widths;
    return config->delta.hidden % ranks ? &divided : NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    const struct delta_config *d = &m->config.delta;
    struct bottleneck *b = c->gate, *shared = m->delta->shared->gate;
    long n = own_connections(&m->delta->part, c->n), Hd = own_part(m, d->hidden), G = d->gate_hidden;
    b->policy = c->policy;
    SAVE_BF16_ROOT(m, b, shared, u, T * n * Hd);
    SAVE_BF16(m, b, shared, gate, T * n * Hd, POLICY_SELECTIVE);
    SAVE_BF16_ROOT(m, b, shared, x, T * n * G);
    SAVE_BF16(m, b, shared, h, T * n * G, POLICY_SELECTIVE);
    SAVE_BF16(m, b, shared, v, T * n * Hd, POLICY_SELECTIVE);
    if (!m->training || d->regularizer == REGULARIZER_NONE) return;
    int from = keeps_extra(m, POLICY_SELECTIVE) ? POLICY_FULL : POLICY_SELECTIVE;
    SAVE_BF16(m, b, shared, extra, T * n * Hd, from);
    SAVE(m, b, shared, out_extra, n * Hd * (m->delta->part.channels ? m->config.hidden_size : Hd), from);
}

static void show(const struct delta_pass *p, int i, struct delta_view *view) {
    const struct bottleneck *b = p->c->gate;
    struct sizes z = sizes(p);
    view->gates = z.Hd, view->gate_ld = z.wide;
    view->gate = b->gate + i * z.Hd;
}

const struct gate gate_bottleneck = {.name = "bottleneck",
                                     .leaves = leaves,
                                     .map = {[MAP_U] = {PROJ, MAP_DIFFERENCE}, [MAP_X] = {GATE_IN, MAP_MEAN}},
                                     .maps = 2,
                                     .linear = true,
                                     .parts = PARTS_SUMMED,
                                     .gates = gates,
                                     .flops = flops,
                                     .conflict = conflict,
                                     .saved_bytes = sizeof(struct bottleneck),
                                     .lay_out = lay_out,
                                     .fill = fill,
                                     .contribute = contribute,
                                     .backward = backward,
                                     .in_place = true,
                                     .show = show};
