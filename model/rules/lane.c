/* The rule `lane` between layers: x ← λ·x + μ·norm(x0) before a layer, x0 the embedding's output, with two
 * numbers a layer, 1 and 0 at the start (model.md, 12). */
#include "model/params/stream.h"
#include "model/rules/norms.h"
#include "model/rules/rules.h"

struct lane {
    int policy;
    struct tensor lambda, mu; /* [1] */
    real *rstd;               /* saved: [R] of x0 */
};

struct common {
    real *gain, *dgain; /* [W] μ in every column, and the gradient */
};

static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    (void)config;
    edge[0] = (struct edge){.source = -1};
    return rule_enters(settings, layer);
}

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    (void)config;
    leaf[0] = leaf_vector("lambda", SPLIT_NONE, 1, 1);
    leaf[1] = leaf_vector("mu", SPLIT_NONE, 1, 0);
    for (int i = 0; i < 2; i++) leaf[i].lr_scale = settings->lr_scale;
    return 2;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    (void)settings;
    return 6.0 * (double)stream_width(config) * n;
}

static void find(struct model *m, const struct rule_layer *x) {
    struct lane *lane = x->own;
    lane->lambda = rule_find_shared(m, x, "lambda");
    lane->mu = rule_find_shared(m, x, "mu");
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct lane *lane = x->own, *shared = shared_of_all;
    (void)T;
    lane->policy = x->policy;
    SAVE(m, lane, shared, rstd, m->rows_max, POLICY_NO_BACKWARD);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    struct common *c = rule->common;
    (void)T, (void)n;
    c->gain = take(&m->scratch, m->stream);
    if (m->training) c->dgain = take(&m->scratch, m->stream);
}

/* μ in every column, whose gradient begins as 0. */
static struct tensor spread(struct model *m, const struct rule_layer *x, bool gradient) {
    const struct lane *lane = x->own;
    const struct common *c = rule_common(m, x);
    m->ops->connection_weights(m->stream, 1, NULL, 1, 1, 1, lane->mu.w, c->gain);
    if (gradient) m->ops->zero(m->stream, c->dgain);
    return (struct tensor){c->gain, c->dgain};
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct lane *lane = x->own;
    (void)sums;
    m->ops->scale(m->rows * m->stream, lane->lambda.w, out);
    norms_forward(m, x, &(struct norms){.n = 1, .gain = spread(m, x, false), .rstd = lane->rstd, .groups = 1},
                  out);
}

static void backward(struct model *m, const struct rule_layer *x) {
    const struct lane *lane = x->own;
    struct tensor gain = spread(m, x, true);
    struct row_range terms = rule_terms(m);
    long W = m->stream;
    m->ops->add_dot(terms.count * W, m->g + terms.first * W, rule_rows(m, x) + (terms.first - m->row0) * W,
                    lane->lambda.g);
    norms_backward(m, x, &(struct norms){.n = 1, .gain = gain, .rstd = lane->rstd, .groups = 1},
                   stream_rows(m, m->g));
    m->ops->connection_weights_back(W, 1, NULL, 1, 1, 1, lane->mu.w, gain.g, lane->mu.g, NULL);
    m->ops->scale(m->rows * W, lane->lambda.w, stream_rows(m, m->g));
}

static const struct rule_form form = {.settings = 1u << SETTING_LAYERS | 1u << SETTING_PERIOD |
                                                  1u << SETTING_LR_SCALE};

const struct rule rule_lane = {.name = "lane",
                               .places = 1u << PLACE_BEFORE,
                               .forms = &form,
                               .num_forms = 1,
                               .defaults = {.place = PLACE_BEFORE, .period = 1, .lr_scale = 10},
                               .edges = edges,
                               .layer_leaves = leaves,
                               .flops = flops,
                               .own_bytes = sizeof(struct lane),
                               .common_bytes = sizeof(struct common),
                               .find = find,
                               .lay_out = lay_out,
                               .lay_out_scratch = lay_out_scratch,
                               .forward = forward,
                               .backward = backward};
