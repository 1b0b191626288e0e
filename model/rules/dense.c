/* Dense connections: before a layer, a weighted sum of the outputs of nodes below it, out = in + Σ_j a_j h_j.
 * The weights a are numbers (form `static`; DenseFormer, Pagliardini et al. 2024), or each token's own, those
 * numbers and what a small MLP makes of the normalised `in` (`dynamic`; MUDD, Xiao et al. 2025): a = w + W₂
 * silu(W₁ norm(in)), w and W₂ 0 at first. Tensor ranks share the rows of the backward pass. */
#include "model/params/stream.h"
#include "model/rules/rules.h"

enum form { STATIC, DYNAMIC };

/* H: width of the MLP. */
struct dense {
    int policy;
    struct tensor weight; /* w [n] */
    struct tensor out;    /* W₂ [n, H] */
    struct tensor in;     /* W₁ [H, W] */
    real *before;         /* saved: [R, H] W₁ norm(in) */
    real *a;              /* saved: [R, n] */
};

/* Scratch. */
struct common {
    real *dweight;      /* [R, n] the gradient of a */
    real *ones, *dones; /* [W] the norm's weights, which are none, and their gradient, which nobody reads */
    real *norm, *dnorm; /* [R, W] */
    real *rstd;         /* [R] */
    real *hidden, *dhidden; /* [R, H] */
};

static const struct common *common_of(const struct model *m, const struct rule_layer *x) {
    return m->rules->rule[x->number].common;
}

static bool is_dynamic(const struct rule_config *settings) {
    return settings->form == DYNAMIC;
}

/* ------------------------------------------------------------------------------------- of a configuration */

/* None where there would be but the node right below. */
static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    int n = 0;
    (void)config;
    if (!rule_enters(settings, layer)) return 0;
    for (int node = layer - 1; node >= -1; node -= settings->dilation)
        edge[n++] = (struct edge){.source = node};
    return n > 1 ? n : 0;
}

static struct leaf learned(const struct rule_config *settings, struct leaf leaf) {
    leaf.decays = false;
    leaf.lr_scale = settings->lr_scale;
    return leaf;
}

static int connection_leaves(const struct model_config *config, const struct rule_config *settings,
                             struct leaf *leaf) {
    (void)config;
    leaf[0] = learned(settings, leaf_vector("weight", SPLIT_NONE, 1, 0));
    if (!is_dynamic(settings)) return 1;
    leaf[1] = learned(settings, leaf_vector("out.weight", SPLIT_NONE, settings->hidden, 0));
    return 2;
}

static int layer_leaves(const struct model_config *config, const struct rule_config *settings,
                        struct leaf *leaf) {
    if (!is_dynamic(settings)) return 0;
    leaf[0] = learned(
        settings, leaf_matrix("in.weight", SPLIT_NONE, settings->hidden, stream_width(config), LEAF_WIDTH));
    return 1;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    double W = (double)stream_width(config), mlp = is_dynamic(settings) ? settings->hidden * (W + n) : 0;
    return 2 * (n * W + mlp);
}

static const struct conflict *conflict(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict nowhere = {
        "a dense rule enters no layer: its dilation and period are expected to leave two nodes below one",
        {"model.rules", "model.num_layers"}};
    struct edge edge[config->num_layers + 1];
    int n = 0;
    (void)tensor, (void)sharing;
    for (int l = 0; l < config->num_layers; l++) n += edges(config, settings, l, edge);
    return n ? NULL : &nowhere;
}

/* ------------------------------------------------------------------------------------------------ creation
 */

static size_t own_bytes(const struct model_config *config, const struct rule_config *settings) {
    (void)config, (void)settings;
    return sizeof(struct dense);
}

static void find(struct model *m, const struct rule_layer *x) {
    struct dense *d = x->own;
    d->weight = rule_find_connections(m, x, "weight");
    if (!is_dynamic(x->entry->settings)) return;
    d->out = rule_find_connections(m, x, "out.weight");
    d->in = rule_find_shared(m, x, "in.weight");
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct dense *d = x->own, *shared = shared_of_all;
    (void)T;
    d->policy = x->policy;
    if (!is_dynamic(x->entry->settings)) return;
    SAVE(m, d, shared, before, m->rows_max * x->entry->settings->hidden, POLICY_SELECTIVE);
    SAVE(m, d, shared, a, m->rows_max * x->n, POLICY_SELECTIVE);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    const struct rule_config *settings = rule->entry.settings;
    struct common *c = rule->common;
    long R = m->rows_max, W = m->stream, H = settings->hidden;
    (void)T;
    if (m->training) c->dweight = take(&m->scratch, R * n);
    if (!is_dynamic(settings)) return;
    c->ones = take(&m->scratch, W);
    c->norm = take(&m->scratch, R * W);
    c->rstd = take(&m->scratch, R);
    c->hidden = take(&m->scratch, R * H);
    if (!m->training) return;
    c->dones = take(&m->scratch, W);
    c->dnorm = take(&m->scratch, R * W);
    c->dhidden = take(&m->scratch, R * H);
}

/* -------------------------------------------------------------------------------------------------- passes
 */

/* Of own rows, the norm and its scale. */
static void normalize(struct model *m, const struct rule_layer *x) {
    const struct common *c = common_of(m, x);
    m->ops->connection_weights(m->stream, 1, NULL, 1, 1, 1, NULL, c->ones);
    m->ops->rms_norm(m->rows, m->stream, rule_rows(m, x), c->ones, m->config.norm_eps, c->norm, c->rstd);
}

/* The weights of each token. */
static void again(struct model *m, const struct rule_layer *x) {
    const struct ops *ops = m->ops;
    const struct dense *d = x->own;
    const struct common *c = common_of(m, x);
    long R = m->rows, W = m->stream, H = x->entry->settings->hidden;
    if (!is_dynamic(x->entry->settings)) return;
    normalize(m, x);
    ops->gemm('N', 'T', R, H, W, 1, c->norm, W, d->in.w, W, 0, d->before, H);
    ops->silu(R * H, d->before, c->hidden);
    ops->connection_weights(R, x->n, NULL, 1, 1, 1, d->weight.w, d->a);
    ops->gemm('N', 'T', R, x->n, H, 1, c->hidden, H, d->out.w, H, 1, d->a, x->n);
}

/* Weights as operations take them: a[t·lda + i], t from the first own row on. */
static const real *weights(const struct rule_layer *x, long *lda) {
    const struct dense *d = x->own;
    bool dynamic = is_dynamic(x->entry->settings);
    *lda = dynamic ? x->n : 0;
    return dynamic ? d->a : d->weight.w;
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const real *source[OPS_CONNECTIONS];
    long lda;
    (void)sums;
    again(m, x);
    const real *a = weights(x, &lda);
    for (int first = 0; first < x->n; first += OPS_CONNECTIONS) {
        int n = x->n - first < OPS_CONNECTIONS ? x->n - first : OPS_CONNECTIONS;
        for (int i = 0; i < n; i++) source[i] = stream_rows(m, node_output(m, x->edge[first + i].source));
        m->ops->add_sources(m->rows, m->stream, n, a + first, lda, 1, source, out);
    }
}

/* The gradient of a at rows [first, end), and what they leave at sources where that is this rank's to do. */
static void sources_back(struct model *m, const struct rule_layer *x, long first, long end, bool leave) {
    long lda, W = m->stream, at = first * W, own = first - m->row0;
    const real *a = weights(x, &lda);
    real *dweight = common_of(m, x)->dweight + own * x->n;
    for (int i = 0; first < end && i < x->n; i++) {
        int node = x->edge[i].source;
        real *ds = leave ? source_gradient_of(m, node) + at : NULL;
        m->ops->source_back(end - first, W, a + own * lda + i, lda, node_output(m, node) + at, m->g + at, ds,
                            dweight + i, x->n);
    }
}

/* From the gradient of a at own rows: those of the MLP's weights, by the rows [first, end) of all, and what
 * comes by way of `in`, which each rank adds to all of its rows. */
static void mlp_back(struct model *m, const struct rule_layer *x, long first, long end) {
    const struct ops *ops = m->ops;
    const struct dense *d = x->own;
    const struct common *c = common_of(m, x);
    long R = m->rows, W = m->stream, H = x->entry->settings->hidden, n = x->n, own = first - m->row0;
    normalize(m, x);
    ops->silu(R * H, d->before, c->hidden);
    ops->gemm('T', 'N', n, H, end - first, 1, c->dweight + own * n, n, c->hidden + own * H, H, 1, d->out.g,
              H);
    ops->gemm('N', 'N', R, H, n, 1, c->dweight, n, d->out.w, H, 0, c->dhidden, H);
    ops->silu_back(R * H, d->before, c->dhidden, c->dhidden);
    ops->gemm('T', 'N', H, W, end - first, 1, c->dhidden + own * H, H, c->norm + own * W, W, 1, d->in.g, W);
    ops->gemm('N', 'N', R, W, H, 1, c->dhidden, H, d->in.w, W, 0, c->dnorm, W);
    ops->zero(W, c->dones);
    ops->rms_norm_back(R, W, rule_rows(m, x), c->ones, c->rstd, c->dnorm, stream_rows(m, m->g), c->dones);
}

/* This rank's terms are those of own rows, or of its part of rows that all have: [first, end). */
static void backward(struct model *m, const struct rule_layer *x) {
    const struct axis *tensor = m->tensor;
    const struct dense *d = x->own;
    const real *dweight = common_of(m, x)->dweight;
    long first = axis_first_row(tensor, m->T, tensor->index),
         end = axis_first_row(tensor, m->T, tensor->index + 1);
    sources_back(m, x, first, end, true);
    m->ops->connection_weights_back(end - first, x->n, NULL, 1, 1, 1, NULL,
                                    dweight + (first - m->row0) * x->n, d->weight.g, NULL);
    if (!is_dynamic(x->entry->settings)) return;
    sources_back(m, x, m->row0, first, false);
    sources_back(m, x, end, m->row0 + m->rows, false);
    mlp_back(m, x, first, end);
}

static const struct rule_form form[] = {
    [STATIC] = {"static", 1u << SETTING_DILATION | 1u << SETTING_PERIOD | 1u << SETTING_LR_SCALE},
    [DYNAMIC] = {"dynamic", 1u << SETTING_DILATION | 1u << SETTING_PERIOD | 1u << SETTING_HIDDEN |
                                1u << SETTING_LR_SCALE},
};

const struct rule rule_dense = {.name = "dense",
                                .places = 1u << PLACE_BEFORE,
                                .forms = form,
                                .num_forms = 2,
                                .defaults = {.dilation = 1, .period = 1, .hidden = 16, .lr_scale = 1},
                                .edges = edges,
                                .connection_leaves = connection_leaves,
                                .layer_leaves = layer_leaves,
                                .flops = flops,
                                .conflict = conflict,
                                .own_bytes = own_bytes,
                                .common_bytes = sizeof(struct common),
                                .find = find,
                                .lay_out = lay_out,
                                .lay_out_scratch = lay_out_scratch,
                                .forward = forward,
                                .backward = backward,
                                .again = again};
