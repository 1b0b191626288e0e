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
    real *rstd;           /* saved: [R] of in */
    real *mapped;         /* saved: [R, H] W₁ in, before the norm's scale */
    real *a;              /* saved: [R, n] */
};

/* Scratch. */
struct common {
    real *dweight;         /* [R, n] the gradient of a */
    real *before, *hidden; /* [R, H] of the MLP, before silu and behind it */
    real *dhidden;         /* [R, H] */
    real *drstd, *k;       /* [R], and the factor of `in` in its gradient */
};

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

/* ------------------------------------------------------------------------------------------------ creation
 */

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
    SAVE(m, d, shared, rstd, m->rows_max, POLICY_SELECTIVE);
    SAVE(m, d, shared, mapped, m->rows_max * x->entry->settings->hidden, POLICY_SELECTIVE);
    SAVE(m, d, shared, a, m->rows_max * x->n, POLICY_SELECTIVE);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    const struct rule_config *settings = rule->entry.settings;
    struct common *c = rule->common;
    long R = m->rows_max, H = settings->hidden;
    (void)T;
    if (m->training) c->dweight = take(&m->scratch, R * n);
    if (!is_dynamic(settings)) return;
    c->before = take(&m->scratch, R * H);
    c->hidden = take(&m->scratch, R * H);
    if (!m->training) return;
    c->dhidden = take(&m->scratch, R * H);
    c->drstd = take(&m->scratch, R);
    c->k = take(&m->scratch, R);
}

/* -------------------------------------------------------------------------------------------------- passes
 */

/* What the MLP has inside, from W₁ in. */
static void activate(struct model *m, const struct rule_layer *x) {
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    long R = m->rows, H = x->entry->settings->hidden;
    m->ops->scale_connections(R, 1, H, d->rstd, d->mapped, c->before);
    m->ops->silu(R * H, c->before, c->hidden);
}

/* The weights of each token. */
static void again(struct model *m, const struct rule_layer *x) {
    const struct ops *ops = m->ops;
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    const real *in = rule_rows(m, x);
    long R = m->rows, W = m->stream, H = x->entry->settings->hidden;
    if (!is_dynamic(x->entry->settings)) return;
    ops->row_rstd(R, W, in, m->config.norm_eps, d->rstd);
    ops->gemm('N', 'T', R, H, W, 1, in, W, d->in.w, W, 0, d->mapped, H);
    activate(m, x);
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

/* The gradient of a at rows of [T, W], and what they leave at sources where that is this rank's to do. */
static void sources_back(struct model *m, const struct rule_layer *x, struct row_range rows, bool leave) {
    const struct common *c = rule_common(m, x);
    long lda, W = m->stream, at = rows.first * W, own = rows.first - m->row0;
    const real *a = weights(x, &lda);
    for (int i = 0; rows.count > 0 && i < x->n; i++) {
        int node = x->edge[i].source;
        real *ds = leave ? source_gradient_of(m, node) + at : NULL;
        m->ops->source_back(rows.count, W, a + own * lda + i, lda, node_output(m, node) + at, m->g + at, ds,
                            c->dweight + own * x->n + i, x->n);
    }
}

/* From the gradient of a at own rows: those of the MLP's weights, by this rank's terms, and what comes by way
 * of `in`, which each rank adds to all of its rows. */
static void mlp_back(struct model *m, const struct rule_layer *x, struct row_range terms) {
    const struct ops *ops = m->ops;
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    const real *in = rule_rows(m, x);
    real *din = stream_rows(m, m->g);
    long R = m->rows, W = m->stream, H = x->entry->settings->hidden, n = x->n, own = terms.first - m->row0;
    activate(m, x);
    ops->gemm('T', 'N', n, H, terms.count, 1, c->dweight + own * n, n, c->hidden + own * H, H, 1, d->out.g,
              H);
    ops->gemm('N', 'N', R, H, n, 1, c->dweight, n, d->out.w, H, 0, c->dhidden, H);
    ops->silu_back(R * H, c->before, c->dhidden, c->dhidden);
    ops->source_back(R, H, d->rstd, 1, d->mapped, c->dhidden, NULL, c->drstd, 1);
    ops->scale_connections(R, 1, H, d->rstd, c->dhidden, c->before); /* now the gradient of W₁ in */
    ops->gemm('T', 'N', H, W, terms.count, 1, c->before + own * H, H, in + own * W, W, 1, d->in.g, W);
    ops->gemm('N', 'N', R, W, H, 1, c->before, H, d->in.w, W, 1, din, W);
    ops->row_rstd_back(R, W, d->rstd, c->drstd, c->k);
    ops->add_scaled_rows(R, W, c->k, in, din);
}

static void backward(struct model *m, const struct rule_layer *x) {
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    struct row_range terms = rule_terms(m);
    long end = terms.first + terms.count;
    sources_back(m, x, terms, true);
    m->ops->connection_weights_back(terms.count, x->n, NULL, 1, 1, 1, NULL,
                                    c->dweight + (terms.first - m->row0) * x->n, d->weight.g, NULL);
    if (!is_dynamic(x->entry->settings)) return;
    sources_back(m, x, (struct row_range){m->row0, terms.first - m->row0}, false);
    sources_back(m, x, (struct row_range){end, m->row0 + m->rows - end}, false);
    mlp_back(m, x, terms);
}

enum { SETTINGS = 1u << SETTING_DILATION | 1u << SETTING_PERIOD | 1u << SETTING_LR_SCALE };
static const struct rule_form form[] = {
    [STATIC] = {"static", SETTINGS}, [DYNAMIC] = {"dynamic", SETTINGS | 1u << SETTING_HIDDEN}};

const struct rule rule_dense = {.name = "dense",
                                .places = 1u << PLACE_BEFORE,
                                .forms = form,
                                .num_forms = 2,
                                .defaults = {.dilation = 1, .period = 1, .hidden = 16, .lr_scale = 1},
                                .edges = edges,
                                .connection_leaves = connection_leaves,
                                .layer_leaves = layer_leaves,
                                .flops = flops,
                                .own_bytes = sizeof(struct dense),
                                .common_bytes = sizeof(struct common),
                                .find = find,
                                .lay_out = lay_out,
                                .lay_out_scratch = lay_out_scratch,
                                .forward = forward,
                                .backward = backward,
                                .again = again};
