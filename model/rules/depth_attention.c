/* Attention over depth (model.md 12): what a layer reads is drawn towards, or replaced by, a weighted sum of
 * the outputs of nodes below it. Each token has weights of its own, of which nothing is kept: the backward
 * pass computes them again, from rows that it reads anyway. At place `value` each head of the layer's values
 * attends by itself (depth_values.h). */
#include "model/params/stream.h"
#include "model/rules/depth_values.h"
#include "model/rules/rules.h"

enum { RESIDUAL, PUBLISHED }; /* its forms */

struct depth {
    struct tensor query, lambda; /* [W], [1]; `published` has no lambda */
    struct depth_values values;  /* at place `value`, in place of them */
};

struct common {
    real *dquery, *dlambda; /* [R, W], [R] each token's terms of the gradients */
    real *rest;             /* [1] 1 − λ */
    struct depth_values_scratch values;
};

static bool at_values(const struct rule_config *settings) {
    return settings->place == PLACE_VALUE;
}

/* The newest node, the last of every `block` layers, and the embedding; none where that is the newest. */
static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    int n = 0;
    (void)config;
    if (layer == 0 || !rule_enters(settings, layer)) return 0;
    for (int node = layer - 1; node >= -1; node--)
        if (node == layer - 1 || (node + 1) % settings->block == 0) edge[n++] = (struct edge){.source = node};
    return n;
}

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    int n = 0;
    if (at_values(settings)) n = depth_values_leaves(config, leaf);
    if (!n) leaf[n++] = leaf_vector("query", SPLIT_NONE, stream_width(config), 0);
    if (n == 1 && settings->form == RESIDUAL) leaf[n++] = leaf_vector("lambda", SPLIT_NONE, 1, 0);
    for (int i = 0; i < n; i++) leaf[i].lr_scale = settings->lr_scale;
    return n;
}

/* Score and sum. */
static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    return at_values(settings) ? depth_values_flops(config, n) : 2.0 * 2 * n * (double)stream_width(config);
}

static const struct conflict *conflict(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict many = {
        "depth_attention reads more than 64 outputs before a layer: a larger block is expected",
        {"model.rules[].block", "model.num_layers"}};
    static const struct conflict published = {
        "depth_attention of form published replaces what a layer reads: place before is expected beside it",
        {"model.rules[].form", "model.rules[].place"}};
    struct edge edge[config->num_layers + 1];
    int most = 0;
    (void)tensor, (void)sharing;
    for (int l = 0; l < config->num_layers && most <= OPS_CONNECTIONS; l++) {
        int n = edges(config, settings, l, edge);
        if (n > most) most = n;
    }
    if (most > OPS_CONNECTIONS) return &many;
    if (!at_values(settings)) return NULL;
    return settings->form == PUBLISHED ? &published : own_input_conflict(config);
}

static void find(struct model *m, const struct rule_layer *x) {
    struct depth *d = x->own;
    if (at_values(x->entry->settings)) {
        depth_values_find(m, x, &d->values);
        return;
    }
    d->query = rule_find_shared(m, x, "query");
    d->lambda = rule_find_shared(m, x, "lambda");
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    struct common *c = rule->common;
    if (at_values(rule->entry.settings)) {
        depth_values_lay_out_scratch(m, &c->values, T, n);
        return;
    }
    if (!m->training) return;
    c->dquery = take(&m->scratch, m->rows_max * m->stream);
    c->dlambda = take(&m->scratch, m->rows_max);
    c->rest = take(&m->scratch, 1);
}

/* The active sources' rows from own row `first` on, and their gradients where there is a list for them. */
static long list_sources(struct model *m, const struct rule_layer *x, long first, const real **h, real **dh) {
    long n = 0, W = m->stream;
    for (int i = 0; i < x->n; i++) {
        if (!rule_edge_active(m, x, i)) continue;
        h[n] = node_rows(m, x->edge[i].source) + first * W;
        if (dh) dh[n] = stream_rows(m, source_gradient_of(m, x->edge[i].source)) + first * W;
        n++;
    }
    return n;
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct depth *d = x->own;
    const struct common *c = rule_common(m, x);
    const real *h[OPS_CONNECTIONS];
    (void)sums;
    if (x->heads) {
        depth_values_forward(m, x, &d->values, &c->values);
        return;
    }
    long n = list_sources(m, x, 0, h, NULL);
    m->ops->depth_attention(m->rows, n, m->stream, d->query.w, h, m->config.norm_eps, d->lambda.w, out);
}

/* From the gradient of what the rule has left that of what was there before, but for its sources' part. */
static void own_backward(struct model *m, const struct depth *d, const struct common *c) {
    real *g = stream_rows(m, m->g);
    if (!d->lambda.w) {
        m->ops->zero(m->rows * m->stream, g);
        return;
    }
    m->ops->connection_weights(1, 1, NULL, 1, 1, 1, NULL, c->rest);
    m->ops->add_columns(1, 1, -1, d->lambda.w, 1, c->rest, 1);
    m->ops->scale(m->rows * m->stream, c->rest, g);
}

/* This rank's terms are those of own rows, or of its part of rows that all have. */
static void stream_backward(struct model *m, const struct rule_layer *x) {
    const struct ops *ops = m->ops;
    const struct depth *d = x->own;
    const struct common *c = rule_common(m, x);
    const real *h[OPS_CONNECTIONS];
    real *dh[OPS_CONNECTIONS];
    struct row_range terms = rule_terms(m);
    long W = m->stream, first = terms.first - m->row0, rows = terms.count,
         n = list_sources(m, x, first, h, dh);
    ops->depth_attention_back(rows, n, W, d->query.w, h, m->config.norm_eps, d->lambda.w,
                              rule_rows(m, x) + first * W, m->g + terms.first * W, dh, c->dquery, c->dlambda);
    ops->add_column_sums(rows, W, c->dquery, W, d->query.g);
    if (d->lambda.w) ops->add_column_sums(rows, 1, c->dlambda, 1, d->lambda.g);
    own_backward(m, d, c);
}

static void backward(struct model *m, const struct rule_layer *x) {
    const struct depth *d = x->own;
    const struct common *c = rule_common(m, x);
    if (x->heads)
        depth_values_backward(m, x, &d->values, &c->values);
    else
        stream_backward(m, x);
}

enum {
    SETTINGS = 1u << SETTING_PLACE | 1u << SETTING_LAYERS | 1u << SETTING_PERIOD | 1u << SETTING_BLOCK |
               1u << SETTING_LR_SCALE
};
static const struct rule_form forms[] = {
    [RESIDUAL] = {"residual", SETTINGS}, [PUBLISHED] = {"published", SETTINGS}};

const struct rule rule_depth_attention = {
    .name = "depth_attention",
    .places = 1u << PLACE_BEFORE | 1u << PLACE_VALUE,
    .forms = forms,
    .num_forms = 2,
    .defaults = {.place = PLACE_BEFORE, .period = 1, .block = 1, .lr_scale = 10},
    .edges = edges,
    .layer_leaves = leaves,
    .flops = flops,
    .conflict = conflict,
    .own_bytes = sizeof(struct depth),
    .common_bytes = sizeof(struct common),
    .find = find,
    .lay_out_scratch = lay_out_scratch,
    .forward = forward,
    .backward = backward,
};
