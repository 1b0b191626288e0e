/* The gate `adaptive` (model.md, 3): c = δ' ⊙ s(d) p, p a softmax over channel groups, computed by a small
 * MLP from the magnitude of δ' and a projection of the mean, the context.
 *
 * Where channels are divided among ranks, it is the same on all of them and goes back on one. */
#include "model/delta/gated.h"

/* The leaves in order, each stacked: Wc [n·G, D], W1 [n][G, 1 + G], b1, W2 [n][G, G], b2. */
enum { CONTEXT, GATE_IN, GATE_IN_BIAS, GATE_OUT, GATE_OUT_BIAS };
enum { MAP_CONTEXT }; /* its map */

struct adaptive {
    int policy;
    real *context;            /* [T, n·G] */
    real *magnitude, *square; /* [n, T] */
    real *x, *h;              /* [n, T, G] the MLP before and after silu */
    real *gate;               /* [n, T, G] */
};

static void fill_magnitude(struct delta_pass *p, int i) {
    const struct model *m = p->m;
    struct adaptive *a = p->c->gate;
    long T = m->T;
    m->ops->delta_magnitude(T, m->config.hidden_size, p->t, own(p, i)->s, row_factor(p, i),
                            m->config.delta.epsilon, a->magnitude + i * T, 1, a->square + i * T);
}

/* Fills x and h of one connection's MLP [T, G] from its magnitude and the context of all connections,
 * a->context [T, n·G]. */
static void fill_hidden(struct delta_pass *p, int i) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    struct adaptive *a = c->gate;
    long T = m->T, G = m->config.delta.gate_hidden, in = G + 1;
    const real *w1 = own_tensor(p, c->leaf[GATE_IN], i, G * in).w; /* [G, 1 + G]: magnitude, then context */
    real *x = a->x + i * T * G, *magnitude = a->magnitude + i * T;
    m->ops->gemm('N', 'T', T, G, 1, 1, magnitude, 1, w1, in, 0, x, G);
    m->ops->gemm('N', 'T', T, G, G, 1, a->context + i * G, p->n * G, w1 + 1, in, 1, x, G);
    m->ops->bias_silu(T, G, own_tensor(p, c->leaf[GATE_IN_BIAS], i, G).w, x, a->h + i * T * G);
}

/* Fills the gate [T, G] of one connection. */
static void fill_one(struct delta_pass *p, int i, bool maps) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    struct adaptive *a = c->gate;
    long T = m->T, G = m->config.delta.gate_hidden;
    real *h = a->h + i * T * G, *gate = a->gate + i * T * G;
    if (!p->recomputed) fill_magnitude(p, i);
    if (maps)
        fill_hidden(p, i);
    else
        m->ops->silu(T * G, a->x + i * T * G, h);
    m->ops->gemm('N', 'T', T, G, G, 1, h, G, own_tensor(p, c->leaf[GATE_OUT], i, G * G).w, G, 0, gate, G);
    m->ops->softmax_gate(T, G, own_tensor(p, c->leaf[GATE_OUT_BIAS], i, G).w, 1 / m->config.delta.temperature, gate, G);
    if (!gated_measures(p) || !gated_counts(m)) return;
    m->ops->softmax_entropy(T, G, gate, G, m->counts, &p->sums->entropy);
    measure_gates(p, i, G, gate, G, m->delta->difference);
}

/* Gradients of the MLP, of the context (into delta_state.dx [T, n·G]), and of the magnitude: its part of δ's
 * gradient goes to k [T] as a factor of δ, its part of r's to dr. */
static void gate_back(struct delta_pass *p, int i, real *dd, real *k) {
    (void)dd;
    struct model *m = p->m;
    struct connections *c = p->c;
    struct adaptive *a = c->gate;
    long T = m->T, D = m->config.hidden_size, G = m->config.delta.gate_hidden, in = G + 1;
    real *dz = m->delta->dgate, *dh = m->delta->dv; /* [T, G] each */
    const struct tensor w1 = own_tensor(p, c->leaf[GATE_IN], i, G * in),
                        w2 = own_tensor(p, c->leaf[GATE_OUT], i, G * G);
    const real *h = a->h + i * T * G, *magnitude = a->magnitude + i * T;
    real *dmagnitude = m->delta->ct;
    m->ops->softmax_gate_back(T, G, 1 / m->config.delta.temperature, a->gate + i * T * G, G, p->entropy,
                              m->counts, dz, G);
    m->ops->add_column_sums(T, G, dz, G, own_tensor(p, c->leaf[GATE_OUT_BIAS], i, G).g);
    weight_gradient(m, NO_WEIGHT_ID, G, G, T, 1, dz, G, h, G, w2.g, G);
    m->ops->gemm('N', 'N', T, G, G, 1, dz, G, w2.w, G, 0, dh, G);
    m->ops->silu_back(T * G, a->x + i * T * G, dh, dh);
    m->ops->add_column_sums(T, G, dh, G, own_tensor(p, c->leaf[GATE_IN_BIAS], i, G).g);
    weight_gradient(m, NO_WEIGHT_ID, G, 1, T, 1, dh, G, magnitude, 1, w1.g, in);
    weight_gradient(m, NO_WEIGHT_ID, G, G, T, 1, dh, G, a->context + i * G, p->n * G, w1.g + 1, in);
    m->ops->gemm('N', 'N', T, 1, G, 1, dh, G, w1.w, in, 0, dmagnitude, 1);
    m->ops->gemm('N', 'N', T, G, G, 1, dh, G, w1.w + 1, in, 0, m->delta->dx + i * G, p->n * G);
    m->ops->delta_magnitude_back(T, D, row_factor(p, i), magnitude, a->square + i * T, dmagnitude, k,
                                 m->delta->dr);
}

static struct gated gate(const struct delta_pass *p, int i) {
    const struct adaptive *a = p->c->gate;
    long G = p->m->config.delta.gate_hidden;
    return (struct gated){a->gate + i * p->m->T * G, G, 0, own(p, i)->edge->scale};
}

static struct gated_row gated(const struct delta_pass *p) {
    return (struct gated_row){gate, p->m->config.hidden_size};
}

static void fill(struct delta_pass *p, bool maps) {
    const struct adaptive *a = p->c->gate;
    if (maps) map_forward(p, MAP_CONTEXT, a->context);
    for (int i = 0; i < p->n; i++) fill_one(p, i, maps);
}

static void contribute(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    struct gated_row row = gated(p);
    gated_contribute(p, &row, add, out, ldo, step);
}

static void backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct model *m = p->m;
    struct gated_row row = gated(p);
    long wide = p->n * m->config.delta.gate_hidden;
    gated_backward(p, &row, dout, ldo, step, gate_back);
    if (!p->works) m->ops->zero(m->T * wide, m->delta->dx);
    struct delta_pass part = map_sum(p, MAP_CONTEXT, m->delta->dx);
    map_backward(&part, MAP_CONTEXT, m->delta->dx + part.row0 * wide);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    long D = config->hidden_size, G = config->delta.gate_hidden;
    leaf[CONTEXT] = leaf_matrix("context_proj.weight", SPLIT_NONE, G, D, LEAF_WIDTH);
    leaf[GATE_IN] = leaf_matrix("gate_in.weight", SPLIT_NONE, G, G + 1, LEAF_WIDTH);
    leaf[GATE_IN_BIAS] = leaf_vector("gate_in.bias", SPLIT_NONE, G, 0);
    leaf[GATE_OUT] = leaf_matrix("gate_out.weight", SPLIT_NONE, G, G, LEAF_WIDTH);
    leaf[GATE_OUT_BIAS] = leaf_vector("gate_out.bias", SPLIT_NONE, G, 0);
    return GATE_OUT_BIAS + 1;
}

static long gates(const struct model_config *config) {
    return config->delta.gate_hidden;
}

static double flops(const struct model_config *config) {
    double D = config->hidden_size, G = config->delta.gate_hidden;
    return 2 * (D * G + (G + 1) * G + G * G);
}

static const struct conflict *conflict(const struct model_config *config, int ranks) {
    static const struct conflict groups = {
        "an adaptive gate has gate_hidden channel groups: at least 2, and a divisor of hidden_size",
        {"model.delta.kind", "model.delta.gate_hidden", "model.hidden_size"}};
    int G = config->delta.gate_hidden;
    (void)ranks;
    return G < 2 || config->hidden_size % G ? &groups : NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct adaptive *a = c->gate, *shared = m->delta->shared->gate;
    long n = own_connections(&m->delta->part, c->n), G = m->config.delta.gate_hidden;
    a->policy = c->policy;
    SAVE_BF16(m, a, shared, context, T * n * G, POLICY_FULL);
    SAVE_BF16(m, a, shared, gate, T * n * G, POLICY_SELECTIVE);
    SAVE_BF16_ROOT(m, a, shared, x, T * n * G);
    SAVE_BF16(m, a, shared, h, T * n * G, POLICY_SELECTIVE);
    SAVE(m, a, shared, magnitude, T * n, POLICY_NO_BACKWARD);
    SAVE(m, a, shared, square, T * n, POLICY_NO_BACKWARD);
}

static void show(const struct delta_pass *p, int i, struct delta_view *view) {
    struct gated g = gate(p, i);
    view->gate = g.gate;
    view->gates = view->gate_ld = g.gates;
}

const struct gate gate_adaptive = {.name = "adaptive",
                                   .leaves = leaves,
                                   .map = {[MAP_CONTEXT] = {CONTEXT, MAP_MEAN}},
                                   .maps = 1,
                                   .mixed = true,
                                   .parts = PARTS_REPLICATED,
                                   .gates = gates,
                                   .flops = flops,
                                   .conflict = conflict,
                                   .saved_bytes = sizeof(struct adaptive),
                                   .lay_out = lay_out,
                                   .lay_out_scratch = gated_lay_out_scratch,
                                   .fill = fill,
                                   .contribute = contribute,
                                   .backward = backward,
                                   .show = show};
