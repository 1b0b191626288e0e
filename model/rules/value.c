/* Values from below, a rule between layers (model.md, 12): v ← v + Σ_j λ_j · 2σ(G_j n[:k]) ⊙ Wv_j norm(h_j),
 * a gate for each value head. Each tensor rank has the rows of Wv and G of its heads, and all of λ. The norm
 * is a factor of rows, behind the product: 1/rms(h_j) is `rstd`, and Wv_j h_j is kept. */
#include "model/params/stream.h"
#include "model/rules/rules.h"

enum { MAP, GATE, WEIGHT, LEAVES };
enum { GATE_CHANNELS = 12 }; /* k, of what the layer reads, at most */

static const char *const leaf_name[LEAVES] = {"v_proj.weight", "gate.weight", "weight"};

/* H: this rank's columns of values, K its heads. */
struct value {
    int policy;
    struct tensor leaf[LEAVES]; /* stacked: [n, H, W], [n, K, k], [n] */
    real *mapped;               /* saved: [n, T, H] Wv h */
    real *gate;                 /* [n, T, K] σ */
    real *rstd;                 /* [n, T] */
};

struct common {
    real *zero;            /* [T, H] */
    real *logit;           /* [T, K] of gates, and their gradient */
    real *dmapped;         /* [T, H] */
    real *dweight, *drstd; /* [T] gradients of λ and rstd for each token */
    real *norm_back;       /* [T] the factor of h in its gradient by way of rstd */
};

static long gate_channels(const struct model_config *config) {
    return config->hidden_size < GATE_CHANNELS ? config->hidden_size : GATE_CHANNELS;
}

struct shape {
    long W, D, H, K, k;
};

static struct shape shape_of(const struct model *m) {
    const struct model_config *c = &m->config;
    int ranks = m->layout.size[AXIS_TENSOR];
    return (struct shape){.W = m->stream,
                          .D = c->hidden_size,
                          .H = rule_width(c, PLACE_VALUE) / ranks,
                          .K = c->num_kv_heads / ranks,
                          .k = gate_channels(c)};
}

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    leaf[MAP] = leaf_matrix(leaf_name[MAP], SPLIT_ROWS, rule_width(config, PLACE_VALUE), stream_width(config),
                            LEAF_WIDTH);
    leaf[GATE] = leaf_matrix(leaf_name[GATE], SPLIT_ROWS, config->num_kv_heads, gate_channels(config), 0);
    leaf[GATE].decays = false;
    leaf[WEIGHT] = leaf_vector(leaf_name[WEIGHT], SPLIT_NONE, 1, 0);
    leaf[WEIGHT].lr_scale = settings->lr_scale;
    return LEAVES;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    double W = (double)stream_width(config), H = (double)rule_width(config, PLACE_VALUE);
    (void)settings;
    return 2.0 * n * (W * H + (double)gate_channels(config) * config->num_kv_heads);
}

static void find(struct model *m, const struct rule_layer *x) {
    struct value *v = x->own;
    for (int i = 0; i < LEAVES; i++) v->leaf[i] = rule_find_connections(m, x, leaf_name[i]);
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct value *v = x->own, *shared = shared_of_all;
    struct shape z = shape_of(m);
    v->policy = x->policy;
    SAVE(m, v, shared, mapped, T * x->n * z.H, POLICY_FULL);
    SAVE(m, v, shared, gate, T * x->n * z.K, POLICY_FULL);
    SAVE(m, v, shared, rstd, T * x->n, POLICY_FULL);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    struct common *c = rule->common;
    struct shape z = shape_of(m);
    (void)n;
    c->zero = take(&m->scratch, T * z.H);
    c->logit = take(&m->scratch, T * z.K);
    if (!m->training) return;
    c->dmapped = take(&m->scratch, T * z.H);
    c->dweight = take(&m->scratch, T);
    c->drstd = take(&m->scratch, T);
    c->norm_back = take(&m->scratch, T);
}

/* A connection in a pass: its source and part of what the layer keeps. */
struct one {
    struct shape z;
    const struct common *c;
    const real *h;                   /* [T, W] */
    real *mapped, *gate, *rstd;      /* [T, H], [T, K], [T] */
    struct tensor map, head, weight; /* Wv, G, λ */
};

static struct tensor part_of(struct tensor t, long at) {
    return (struct tensor){t.w + at, t.g + at};
}

static struct one one_of(const struct model *m, const struct rule_layer *x, int i) {
    const struct value *v = x->own;
    struct shape z = shape_of(m);
    return (struct one){.z = z,
                        .c = rule_common(m, x),
                        .h = node_output(m, x->edge[i].source),
                        .mapped = v->mapped + i * m->T * z.H,
                        .gate = v->gate + i * m->T * z.K,
                        .rstd = v->rstd + i * m->T,
                        .map = part_of(v->leaf[MAP], i * z.H * z.W),
                        .head = part_of(v->leaf[GATE], i * z.K * z.k),
                        .weight = part_of(v->leaf[WEIGHT], i)};
}

/* What the backward pass reads. */
static void compute(struct model *m, const struct rule_layer *x, const struct one *o) {
    const struct ops *ops = m->ops;
    struct shape z = o->z;
    ops->row_rstd(m->T, z.W, o->h, m->config.norm_eps, o->rstd);
    ops->gemm('N', 'T', m->T, z.H, z.W, 1, o->h, z.W, o->map.w, z.W, 0, o->mapped, z.H);
    ops->gemm('N', 'T', m->T, z.K, z.k, 1, x->heads->n, z.D, o->head.w, z.k, 0, o->c->logit, z.K);
    ops->sigmoid_gate(m->T, z.K, 1, NULL, o->c->logit, o->gate, z.K);
}

static void again(struct model *m, const struct rule_layer *x) {
    if (x->policy < POLICY_FULL) return;
    for (int i = 0; i < x->n; i++) {
        struct one o = one_of(m, x, i);
        if (rule_edge_active(m, x, i)) compute(m, x, &o);
    }
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    (void)sums;
    for (int i = 0; i < x->n; i++) {
        struct one o = one_of(m, x, i);
        struct shape z = o.z;
        if (!rule_edge_active(m, x, i)) continue;
        compute(m, x, &o);
        m->ops->zero(m->T * z.H, o.c->zero);
        m->ops->gated_delta(m->T, z.H, z.K, o.mapped, o.c->zero, o.gate, z.K, o.rstd, 2, o.weight.w, 0, true,
                            out, x->heads->ld, NULL);
    }
}

static void connection_backward(struct model *m, const struct rule_layer *x, const struct one *o, real *dh) {
    const struct ops *ops = m->ops;
    const struct common *c = o->c;
    struct shape z = o->z;
    long T = m->T;
    real *dlogit = c->logit;
    ops->zero(T * z.H, c->zero);
    ops->gated_delta_back(T, z.H, z.K, o->mapped, c->zero, o->gate, z.K, o->rstd, 2, o->weight.w, 0,
                          x->heads->at, x->heads->ld, NULL, 0, c->dweight, 1, dlogit, c->dmapped, c->drstd);
    ops->connection_weights_back(T, 1, NULL, 1, 1, 1, o->weight.w, c->dweight, o->weight.g, NULL);
    ops->sigmoid_gate_back(T, z.K, 1, NULL, o->gate, o->gate, z.K, 0, dlogit, z.K, NULL);
    ops->gemm('T', 'N', z.K, z.k, T, 1, dlogit, z.K, x->heads->n, z.D, 1, o->head.g, z.k);
    ops->gemm('N', 'N', T, z.k, z.K, 1, dlogit, z.K, o->head.w, z.k, 1, x->heads->dn, z.D);
    ops->gemm('T', 'N', z.H, z.W, T, 1, c->dmapped, z.H, o->h, z.W, 1, o->map.g, z.W);
    ops->gemm('N', 'N', T, z.W, z.H, 1, c->dmapped, z.H, o->map.w, z.W, 1, dh, z.W);
    ops->row_rstd_back(T, z.W, o->rstd, c->drstd, c->norm_back);
    ops->add_scaled_rows(T, z.W, c->norm_back, o->h, dh);
}

static void backward(struct model *m, const struct rule_layer *x) {
    for (int i = 0; i < x->n; i++) {
        struct one o = one_of(m, x, i);
        if (rule_edge_active(m, x, i))
            connection_backward(m, x, &o, source_gradient_of(m, x->edge[i].source));
    }
}

static void renew(struct model *m, const struct rule_layer *x) {
    for (int i = 0; i < x->n; i++) {
        struct one o = one_of(m, x, i);
        if (rule_edge_active(m, x, i)) m->ops->row_rstd(m->T, o.z.W, o.h, m->config.norm_eps, o.rstd);
    }
}

static const struct rule_form form = {.settings = 1u << SETTING_SOURCES | 1u << SETTING_DISTANCES |
                                                  1u << SETTING_LAYERS | 1u << SETTING_PERIOD |
                                                  1u << SETTING_LR_SCALE};

const struct rule rule_value = {
    .name = "value",
    .forms = &form,
    .num_forms = 1,
    .places = 1u << PLACE_VALUE,
    .defaults = {.place = PLACE_VALUE, .sources = {0, -1}, .num_sources = 2, .period = 1, .lr_scale = 5},
    .edges = rule_edges,
    .connection_leaves = leaves,
    .flops = flops,
    .own_bytes = sizeof(struct value),
    .common_bytes = sizeof(struct common),
    .find = find,
    .lay_out = lay_out,
    .lay_out_scratch = lay_out_scratch,
    .forward = forward,
    .backward = backward,
    .again = again,
    .renew = renew};
