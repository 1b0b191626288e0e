/* Values beside a layer's own, a rule between layers (model.md, 12): v ← v + Σ_j λ_j · 2σ(G_j n[:k]) ⊙ V_j, a
 * gate for each value head. V_j are maps of sources, Wv_j norm(h_j) (form `projected`); or, one V alone, rows
 * of a table of the vocabulary (`embedding`), which has no source, or the first layer's own values
 * (`residual`). Each tensor rank has what belongs to its heads of Wv, table and G, and all of λ. The norm is
 * a factor of rows, behind the product: 1/rms(h_j) is `rstd`, and Wv_j h_j is kept. */
#include "model/params/stream.h"
#include "model/rules/first_values.h"
#include "model/rules/rules.h"

#include <string.h>

enum { MAP, GATE, WEIGHT, LEAVES };
enum { GATE_CHANNELS = 12 }; /* k, of what the layer reads, at most */

enum form { PROJECTED, EMBEDDING, RESIDUAL };

static const char *const leaf_name[][LEAVES] = {[PROJECTED] = {"v_proj.weight", "gate.weight", "weight"},
                                                [EMBEDDING] = {"embed.weight", "gate.weight", "weight"},
                                                [RESIDUAL] = {NULL, "gate.weight", "weight"}};

/* H: this rank's columns of values, K its heads; of `embedding` n is 1. */
struct value {
    int policy;
    struct tensor leaf[LEAVES]; /* stacked: [n, H, W], or [vocabulary, H]; [n, K, k], [n] */
    real *mapped;               /* saved: [n, T, H] Wv h, or the table's rows */
    real *gate;                 /* [n, T, K] σ */
    real *rstd;                 /* [n, T], of `projected` alone */
    struct first_values first;  /* of `residual`, in place of mapped */
};

struct common {
    real *zero;            /* [T, H] */
    real *logit;           /* [T, K] of gates, and their gradient */
    real *dmapped;         /* [T, H] */
    real *dweight, *drstd; /* [T] gradients of λ and rstd for each token */
    real *norm_back;       /* [T] the factor of h in its gradient by way of rstd */
    struct first_values_scratch first;
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

static bool is_embedding(const struct rule_config *settings) {
    return settings->form == EMBEDDING;
}
static bool is_residual(const struct rule_config *settings) {
    return settings->form == RESIDUAL;
}

/* The first layer's values follow from the embedding. */
static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    if (settings->form == PROJECTED) return rule_edges(config, settings, layer, edge);
    edge[0] = (struct edge){.source = -1, .without = 1u << MAP};
    return is_residual(settings) && layer > 0 && rule_enters(settings, layer);
}

/* The table's rows start as long as the trunk's values are, Wv of a row of rms 1. */
static struct leaf map_leaf(const struct model_config *config, const struct rule_config *settings) {
    const char *name = leaf_name[settings->form][MAP];
    long H = rule_width(config, PLACE_VALUE);
    if (!is_embedding(settings)) return leaf_matrix(name, SPLIT_ROWS, H, stream_width(config), LEAF_WIDTH);
    struct leaf table =
        leaf_matrix(name, SPLIT_COLUMNS, config->vocab_size, H, LEAF_WIDTH * sqrt(config->hidden_size));
    table.elementwise = true;
    return table;
}

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    const char *const *name = leaf_name[settings->form];
    leaf[MAP] = is_residual(settings) ? (struct leaf){0} : map_leaf(config, settings);
    leaf[GATE] = leaf_matrix(name[GATE], SPLIT_ROWS, config->num_kv_heads, gate_channels(config), 0);
    leaf[GATE].decays = false;
    leaf[GATE].elementwise = true;
    leaf[WEIGHT] = leaf_vector(name[WEIGHT], SPLIT_NONE, 1, 0);
    leaf[WEIGHT].lr_scale = settings->lr_scale;
    return LEAVES;
}

static int connection_leaves(const struct model_config *config, const struct rule_config *settings,
                             struct leaf *leaf) {
    return is_embedding(settings) ? 0 : leaves(config, settings, leaf);
}

static int layer_leaves(const struct model_config *config, const struct rule_config *settings,
                        struct leaf *leaf) {
    return is_embedding(settings) ? leaves(config, settings, leaf) : 0;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    double map = (double)stream_width(config) * (double)rule_width(config, PLACE_VALUE);
    return 2.0 * n *
           ((settings->form == PROJECTED ? map : 0) + (double)gate_channels(config) * config->num_kv_heads);
}

static void find(struct model *m, const struct rule_layer *x) {
    const struct rule_config *settings = x->entry->settings;
    struct value *v = x->own;
    if (is_residual(settings)) first_values_find(m, &v->first);
    for (int i = is_residual(settings) ? GATE : MAP; i < LEAVES; i++) {
        const char *name = leaf_name[settings->form][i];
        v->leaf[i] =
            is_embedding(settings) ? rule_find_shared(m, x, name) : rule_find_connections(m, x, name);
    }
}

/* How many V are added. */
static long terms(const struct rule_layer *x) {
    return is_embedding(x->entry->settings) ? x->enters : x->n;
}

static bool is_active(const struct model *m, const struct rule_layer *x, int i) {
    return is_embedding(x->entry->settings) || rule_edge_active(m, x, i);
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct value *v = x->own, *shared = shared_of_all;
    struct shape z = shape_of(m);
    long n = terms(x);
    const struct rule_config *settings = x->entry->settings;
    v->policy = x->policy;
    SAVE(m, v, shared, gate, T * n * z.K, POLICY_FULL);
    if (is_residual(settings))
        first_values_lay_out(m, x, &v->first, &shared->first, T, z.H);
    else
        SAVE_BF16(m, v, shared, mapped, T * n * z.H, POLICY_FULL);
    if (settings->form == PROJECTED) SAVE(m, v, shared, rstd, T * n, POLICY_FULL);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    struct common *c = rule->common;
    struct shape z = shape_of(m);
    (void)n;
    c->zero = take(&m->scratch, T * z.H);
    c->logit = take(&m->scratch, T * z.K);
    if (is_residual(rule->entry.settings)) first_values_lay_out_scratch(m, &c->first, T, z.H);
    if (!m->training) return;
    c->dmapped = take(&m->scratch, T * z.H);
    c->dweight = take(&m->scratch, T);
    if (rule->entry.settings->form != PROJECTED) return;
    c->drstd = take(&m->scratch, T);
    c->norm_back = take(&m->scratch, T);
}

/* A V in a pass: its source and part of what the layer keeps. */
struct one {
    struct shape z;
    enum form form;
    struct common *c;
    const real *h;                    /* [T, W] of `projected` */
    real *mapped, *gate, *rstd;       /* [T, H], [T, K], [T], the last of `projected`, else NULL */
    struct tensor map, head, weight;  /* Wv or the table, G, λ */
    const struct first_values *first; /* of `residual` */
};

static struct tensor part_of(struct tensor t, long at) {
    return (struct tensor){t.w + at, t.g + at};
}

static struct one one_of(const struct model *m, const struct rule_layer *x, int i) {
    const struct value *v = x->own;
    struct shape z = shape_of(m);
    struct one one = {.z = z,
                      .form = (enum form)x->entry->settings->form,
                      .c = rule_common(m, x),
                      .gate = v->gate + i * m->T * z.K,
                      .head = part_of(v->leaf[GATE], i * z.K * z.k),
                      .weight = part_of(v->leaf[WEIGHT], i)};
    if (one.form == RESIDUAL) {
        one.first = &((const struct value *)first_values_lowest(m, x)->own)->first;
        one.mapped = one.first->v;
        return one;
    }
    one.mapped = v->mapped + i * m->T * z.H;
    one.map = part_of(v->leaf[MAP], i * z.H * z.W);
    if (one.form == EMBEDDING) return one;
    one.h = node_output(m, x->edge[i].source);
    one.rstd = v->rstd + i * m->T;
    return one;
}

static void map(struct model *m, const struct rule_layer *x, const struct one *o) {
    const struct ops *ops = m->ops;
    struct shape z = o->z;
    switch (o->form) {
    case EMBEDDING:
        ops->embed(m->T, z.H, m->trunk->input, 0, m->config.vocab_size, o->map.w, o->mapped);
        break;
    case RESIDUAL:
        first_values_forward(m, x, o->first, &o->c->first, z.H);
        break;
    case PROJECTED:
        ops->row_rstd(m->T, z.W, o->h, m->config.norm_eps, o->rstd);
        ops->gemm('N', 'T', m->T, z.H, z.W, 1, o->h, z.W, o->map.w, z.W, 0, o->mapped, z.H);
    }
}

/* What the backward pass reads. */
static void compute(struct model *m, const struct rule_layer *x, const struct one *o) {
    const struct ops *ops = m->ops;
    struct shape z = o->z;
    map(m, x, o);
    ops->gemm('N', 'T', m->T, z.K, z.k, 1, x->heads->n, z.D, o->head.w, z.k, 0, o->c->logit, z.K);
    ops->sigmoid_gate(m->T, z.K, 1, NULL, o->c->logit, o->gate, z.K);
}

static void again(struct model *m, const struct rule_layer *x) {
    if (x->policy < POLICY_FULL) return;
    for (int i = 0; i < terms(x); i++) {
        struct one o = one_of(m, x, i);
        if (is_active(m, x, i)) compute(m, x, &o);
    }
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    (void)sums;
    for (int i = 0; i < terms(x); i++) {
        struct one o = one_of(m, x, i);
        struct shape z = o.z;
        if (!is_active(m, x, i)) continue;
        compute(m, x, &o);
        m->ops->zero(m->T * z.H, o.c->zero);
        m->ops->gated_delta(m->T, z.H, z.K, o.mapped, o.c->zero, o.gate, z.K, o.rstd, 2, o.weight.w, 0, true,
                            out, x->heads->ld, NULL);
    }
}

/* From dmapped, and drstd where there is a source of its own, whose gradient dh is then. */
static void map_back(struct model *m, const struct rule_layer *x, const struct one *o, real *dh) {
    const struct ops *ops = m->ops;
    const struct common *c = o->c;
    struct shape z = o->z;
    long T = m->T;
    switch (o->form) {
    case EMBEDDING:
        ops->embed_back(T, z.H, m->trunk->input, 0, m->config.vocab_size, c->dmapped, o->map.g);
        break;
    case RESIDUAL:
        first_values_backward(m, x, o->first, &c->first, c->dmapped, z.H);
        break;
    case PROJECTED:
        weight_gradient(m, NO_WEIGHT_ID, z.H, z.W, T, 1, c->dmapped, z.H, o->h, z.W, o->map.g, z.W);
        ops->gemm('N', 'N', T, z.W, z.H, 1, c->dmapped, z.H, o->map.w, z.W, 1, dh, z.W);
        ops->row_rstd_back(T, z.W, o->rstd, c->drstd, c->norm_back);
        ops->add_scaled_rows(T, z.W, c->norm_back, o->h, dh);
    }
}

static void term_backward(struct model *m, const struct rule_layer *x, const struct one *o, real *dh) {
    const struct ops *ops = m->ops;
    const struct common *c = o->c;
    struct shape z = o->z;
    long T = m->T;
    real *dlogit = c->logit;
    ops->zero(T * z.H, c->zero);
    ops->gated_delta_back(T, z.H, z.K, o->mapped, c->zero, o->gate, z.K, o->rstd, 2, o->weight.w, 0,
                          x->heads->at, x->heads->ld, NULL, 0, c->dweight, 1, dlogit, c->dmapped,
                          o->rstd ? c->drstd : NULL);
    ops->connection_weights_back(T, 1, NULL, 1, 1, 1, o->weight.w, c->dweight, o->weight.g, NULL);
    ops->sigmoid_gate_back(T, z.K, 1, NULL, o->gate, o->gate, z.K, 0, NULL, dlogit, z.K, NULL);
    weight_gradient(m, NO_WEIGHT_ID, z.K, z.k, T, 1, dlogit, z.K, x->heads->n, z.D, o->head.g, z.k);
    ops->gemm('N', 'N', T, z.k, z.K, 1, dlogit, z.K, o->head.w, z.k, 1, x->heads->dn, z.D);
    map_back(m, x, o, dh);
}

static void backward(struct model *m, const struct rule_layer *x) {
    for (int i = 0; i < terms(x); i++) {
        struct one o = one_of(m, x, i);
        if (is_active(m, x, i))
            term_backward(m, x, &o, o.h ? source_gradient_of(m, x->edge[i].source) : NULL);
    }
}

static void renew(struct model *m, const struct rule_layer *x) {
    for (int i = 0; i < x->n; i++) {
        struct one o = one_of(m, x, i);
        if (o.h && rule_edge_active(m, x, i)) m->ops->row_rstd(m->T, o.z.W, o.h, m->config.norm_eps, o.rstd);
    }
}

enum { SETTINGS = 1u << SETTING_LAYERS | 1u << SETTING_PERIOD | 1u << SETTING_LR_SCALE };
static const struct rule_form forms[] = {
    [PROJECTED] = {"projected", SETTINGS | 1u << SETTING_SOURCES | 1u << SETTING_DISTANCES},
    [EMBEDDING] = {"embedding", SETTINGS},
    [RESIDUAL] = {"residual", SETTINGS}};

static const char *const *borrowed(const struct rule_config *settings) {
    return is_residual(settings) ? first_values_leaves : NULL;
}

/* The first layer has such values. */
static const struct conflict *conflict(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict none = {"values of form residual are those that attention has in the first "
                                         "layer, which has another mixer",
                                         {"model.rules[].kind", "model.rules[].form"}};
    (void)tensor, (void)sharing;
    return is_residual(settings) && strcmp(mixer_of(config, 0)->name, "attention") != 0 ? &none : NULL;
}

const struct rule rule_value = {
    .name = "value",
    .forms = forms,
    .num_forms = 3,
    .places = 1u << PLACE_VALUE,
    .defaults = {.place = PLACE_VALUE, .sources = {0, -1}, .num_sources = 2, .period = 1, .lr_scale = 5},
    .edges = edges,
    .tokens = is_embedding,
    .connection_leaves = connection_leaves,
    .layer_leaves = layer_leaves,
    .flops = flops,
    .conflict = conflict,
    .borrowed = borrowed,
    .own_bytes = sizeof(struct value),
    .common_bytes = sizeof(struct common),
    .find = find,
    .lay_out = lay_out,
    .lay_out_scratch = lay_out_scratch,
    .forward = forward,
    .backward = backward,
    .again = again,
    .renew = renew};
