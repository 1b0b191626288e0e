/* Dense connections: before a layer, a weighted sum of the outputs of nodes below it, out = in + Σ_j a_j h_j.
 * The weights a are numbers (form `static`; DenseFormer, Pagliardini et al. 2024), or each token's own, those
 * numbers and what a small MLP makes of the normalised `in` (`dynamic`; MUDD, Xiao et al. 2025): a = w + W₂
 * silu(W₁ norm(in)), w and W₂ 0 at first. The layer's queries, keys and values may have sums of their own
 * beside that (`channels`), what they are projected from, with weights of their own by the same MLP. The
 * sum before the head (place `head`) stands behind the last layer, whose own output is its `in`. Tensor ranks
 * share the rows of the backward pass. */
#include "model/params/stream.h"
#include "model/rules/mlp.h"
#include "model/rules/own_input.h"
#include "model/rules/rules.h"

enum form { STATIC, DYNAMIC };

/* The sums: the stream's, and those of queries, keys and values. */
enum channel { STREAM, QUERY, KEY, VALUE, CHANNELS };
enum { WEIGHT, OUT, LEAVES }; /* of each; OUT of `dynamic` alone */
static const char *const leaf_name[CHANNELS][LEAVES] = {{"weight", "out.weight"},
                                                        {"query.weight", "query.out.weight"},
                                                        {"key.weight", "key.out.weight"},
                                                        {"value.weight", "value.out.weight"}};

/* H: width of the MLP. */
struct dense {
    int policy;
    struct tensor weight[CHANNELS]; /* w [n] */
    struct tensor out[CHANNELS];    /* W₂ [n, H] */
    struct own_input input[CHANNELS];
    struct mlp mlp;    /* has W₁ */
    real *a[CHANNELS]; /* saved: [R, n] */
};

/* Scratch. */
struct common {
    real *dweight[CHANNELS]; /* [R, n] the gradient of a */
    struct mlp_scratch mlp;
    struct own_input_scratch input;
    struct own_stream stream[CHANNELS]; /* of the layer's queries, keys and values, for one pass of it */
};

_Static_assert((int)CHANNELS <= (int)OPS_SUMS, "a layer's sums are made in one call");

static bool is_dynamic(const struct rule_config *settings) {
    return settings->form == DYNAMIC;
}

/* ------------------------------------------------------------------------------------- of a configuration */

static enum rule_place place_of(enum channel channel) {
    return PLACE_QUERY + (enum rule_place)(channel - QUERY);
}

static bool has(const struct rule_config *settings, enum channel channel) {
    return channel == STREAM || rule_enters_at(settings, place_of(channel));
}

/* Before a layer none where there would be but the node right below. */
static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    bool head = settings->place == PLACE_HEAD;
    int n = 0;
    if (head ? layer != config->num_layers - 1 : !rule_enters(settings, layer)) return 0;
    for (int node = layer - (head ? settings->dilation : 1); node >= -1; node -= settings->dilation)
        edge[n++] = (struct edge){.source = node};
    return head || n > 1 ? n : 0;
}

static struct leaf learned(const struct rule_config *settings, struct leaf leaf) {
    leaf.decays = false;
    leaf.lr_scale = settings->lr_scale;
    return leaf;
}

static int connection_leaves(const struct model_config *config, const struct rule_config *settings,
                             struct leaf *leaf) {
    int n = 0;
    (void)config;
    for (enum channel c = STREAM; c < CHANNELS; c++) {
        if (!has(settings, c)) continue;
        leaf[n++] = learned(settings, leaf_vector(leaf_name[c][WEIGHT], SPLIT_NONE, 1, 0));
        if (is_dynamic(settings))
            leaf[n++] = learned(settings, leaf_vector(leaf_name[c][OUT], SPLIT_NONE, settings->hidden, 0));
    }
    return n;
}

static int layer_leaves(const struct model_config *config, const struct rule_config *settings,
                        struct leaf *leaf) {
    if (!is_dynamic(settings)) return 0;
    leaf[0] = learned(settings, mlp_leaf(config, settings));
    return 1;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    double W = (double)stream_width(config), all = 0;
    int sums = 0;
    if (!n) return 0;
    for (enum channel c = STREAM; c < CHANNELS; c++) {
        if (!has(settings, c)) continue;
        sums++;
        all += 2 * n * W + (c == STREAM ? 0 : own_input_flops(config, place_of(c)));
    }
    return all + (is_dynamic(settings) ? mlp_flops(config, settings, sums * n) : 0);
}

static const struct conflict *conflict(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict
        channels =
            {"channels of dense are those of a layer that it enters: place before is expected beside them",
             {"model.rules[].channels", "model.rules[].place"}},
        period = {"the sum of dense before the head is one: no period is expected beside place head",
                  {"model.rules[].period", "model.rules[].place"}};
    (void)tensor, (void)sharing;
    if (settings->place == PLACE_HEAD && settings->period > 1) return &period;
    if (!settings->channels) return NULL;
    return settings->place == PLACE_HEAD ? &channels : own_input_conflict(config);
}

/* ------------------------------------------------------------------------------------------------ creation
 */

static void find(struct model *m, const struct rule_layer *x) {
    const struct rule_config *settings = x->entry->settings;
    struct dense *d = x->own;
    for (enum channel c = STREAM; c < CHANNELS; c++) {
        if (!has(settings, c)) continue;
        d->weight[c] = rule_find_connections(m, x, leaf_name[c][WEIGHT]);
        if (is_dynamic(settings)) d->out[c] = rule_find_connections(m, x, leaf_name[c][OUT]);
        if (c != STREAM) own_input_find(m, x->layer, place_of(c), &d->input[c]);
    }
    if (is_dynamic(settings)) mlp_find(m, x, &d->mlp);
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    const struct rule_config *settings = x->entry->settings;
    struct dense *d = x->own, *shared = shared_of_all;
    (void)T;
    d->policy = x->policy;
    if (!is_dynamic(settings)) return;
    mlp_lay_out(m, x, &d->mlp, &shared->mlp);
    /* A mixer that computes again reads those of channels: they stay as they are. */
    for (enum channel c = STREAM; c < CHANNELS; c++)
        if (has(settings, c))
            SAVE_AS(m, m->bf16_activations && !settings->channels, d, shared, a[c], m->rows_max * x->n,
                    POLICY_SELECTIVE);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    const struct rule_config *settings = rule->entry.settings;
    struct common *c = rule->common;
    for (enum channel i = STREAM; m->training && i < CHANNELS; i++)
        if (has(settings, i)) c->dweight[i] = take(&m->scratch, m->rows_max * n);
    if (settings->channels) own_input_lay_out_scratch(m, &c->input, T);
    for (enum channel i = QUERY; i < CHANNELS; i++)
        if (has(settings, i)) own_input_lay_out_stream(m, &c->stream[i]);
    if (is_dynamic(settings)) mlp_lay_out_scratch(m, settings, &c->mlp);
}

/* -------------------------------------------------------------------------------------------------- passes
 */

/* The weights of each token. */
static void again(struct model *m, const struct rule_layer *x) {
    const struct rule_config *settings = x->entry->settings;
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    if (!is_dynamic(settings)) return;
    mlp_forward(m, x, &d->mlp, &c->mlp);
    for (enum channel i = STREAM; i < CHANNELS; i++) {
        if (!has(settings, i)) continue;
        m->ops->connection_weights(m->rows, x->n, NULL, 1, 1, 1, d->weight[i].w, d->a[i]);
        mlp_weights(m, x, &c->mlp, d->out[i], x->n, d->a[i]);
    }
}

static enum channel channel_of(const struct rule_layer *x) {
    return x->heads ? QUERY + (enum channel)(x->at - PLACE_QUERY) : STREAM;
}

/* Channels whose sums are made, or go back, in one pass over the sources. */
struct sums {
    int count;
    enum channel channel[CHANNELS];
};

static struct sums sums_from(const struct rule_layer *x, enum channel first) {
    struct sums sums = {0};
    for (enum channel c = first; c < CHANNELS; c++)
        if (has(x->entry->settings, c)) sums.channel[sums.count++] = c;
    return sums;
}

static const struct sums of_stream = {1, {STREAM}};

/* Weights as operations take them, a[t·lda + i], t from own row `own` on. */
static const real *weights(const struct rule_layer *x, enum channel channel, long own, long *lda) {
    const struct dense *d = x->own;
    *lda = is_dynamic(x->entry->settings) ? x->n : 0;
    return *lda ? d->a[channel] + own * *lda : d->weight[channel].w;
}

/* How many sources one call takes from number `first` on. */
static int sources_of_call(const struct rule_layer *x, int first) {
    return x->n - first < OPS_CONNECTIONS ? x->n - first : OPS_CONNECTIONS;
}

/* y[channel] = base + its sum, own rows; base may be y[channel]. */
static void make_sums(struct model *m, const struct rule_layer *x, const struct sums *sums, const real *base,
                      real *const y[CHANNELS]) {
    const real *source[OPS_CONNECTIONS], *weight[CHANNELS], *from[CHANNELS];
    real *to[CHANNELS];
    long lda = 0;
    for (int first = 0; first < x->n; first += OPS_CONNECTIONS) {
        int n = sources_of_call(x, first);
        for (int i = 0; i < n; i++) source[i] = stream_rows(m, node_output(m, x->edge[first + i].source));
        for (int k = 0; k < sums->count; k++) {
            weight[k] = weights(x, sums->channel[k], 0, &lda) + first;
            to[k] = y[sums->channel[k]];
            from[k] = first ? to[k] : base;
        }
        m->ops->add_sources(m->rows, m->stream, n, sums->count, weight, lda, source, from, to);
    }
}

/* The streams that a layer's queries, keys and values have in place of its own: made where the first one
 * enters. */
static void make_inputs(struct model *m, const struct rule_layer *x) {
    const struct common *c = rule_common(m, x);
    struct sums sums = sums_from(x, QUERY);
    if (channel_of(x) != sums.channel[0]) return;
    make_sums(m, x, &sums, layer_input(m, x->layer),
              (real *[]){[QUERY] = c->stream[QUERY].own, c->stream[KEY].own, c->stream[VALUE].own});
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    enum channel channel = channel_of(x);
    (void)sums;
    if (channel == STREAM) {
        again(m, x);
        make_sums(m, x, &of_stream, out, (real *[CHANNELS]){out});
        return;
    }
    make_inputs(m, x);
    own_input_forward(m, x, &d->input[channel], &c->input, c->stream[channel].own);
}

/* From g[channel], own rows of the gradients of what the sums were added to, the gradients of a at rows of
 * [T, W], and what they leave at sources where that is this rank's to do. */
static void sources_back(struct model *m, const struct rule_layer *x, const struct sums *sums,
                         real *const g[CHANNELS], struct row_range rows, bool leave) {
    const struct common *c = rule_common(m, x);
    const real *source[OPS_CONNECTIONS], *weight[CHANNELS], *dy[CHANNELS];
    real *ds[OPS_CONNECTIONS], *dweight[CHANNELS];
    long lda = 0, W = m->stream, at = rows.first * W, own = rows.first - m->row0;
    for (int first = 0; rows.count > 0 && first < x->n; first += OPS_CONNECTIONS) {
        int n = sources_of_call(x, first);
        for (int i = 0; i < n; i++) {
            int node = x->edge[first + i].source;
            source[i] = node_output(m, node) + at;
            if (leave) ds[i] = source_gradient_of(m, node) + at;
        }
        for (int k = 0; k < sums->count; k++) {
            enum channel channel = sums->channel[k];
            weight[k] = weights(x, channel, own, &lda) + first;
            dy[k] = g[channel] + own * W;
            dweight[k] = c->dweight[channel] + own * x->n + first;
        }
        m->ops->sources_back(rows.count, W, n, sums->count, weight, lda, source, dy, leave ? ds : NULL,
                             dweight, x->n);
    }
}

/* Of all sums: the gradients of their sources, of their numbers w, and of each token's weights. */
static void sums_backward(struct model *m, const struct rule_layer *x, real *const g[CHANNELS]) {
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    const struct sums sums = sums_from(x, STREAM);
    struct row_range terms = rule_terms(m);
    long end = terms.first + terms.count;
    sources_back(m, x, &sums, g, terms, true);
    for (int k = 0; k < sums.count; k++)
        m->ops->connection_weights_back(terms.count, x->n, NULL, 1, 1, 1, NULL,
                                        c->dweight[sums.channel[k]] + (terms.first - m->row0) * x->n,
                                        d->weight[sums.channel[k]].g, NULL);
    if (!is_dynamic(x->entry->settings)) return;
    sources_back(m, x, &sums, g, (struct row_range){m->row0, terms.first - m->row0}, false);
    sources_back(m, x, &sums, g, (struct row_range){end, m->row0 + m->rows - end}, false);
}

/* Of the MLP that gives all sums' weights. */
static void weights_backward(struct model *m, const struct rule_layer *x) {
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    if (!is_dynamic(x->entry->settings)) return;
    mlp_again(m, x, &d->mlp, &c->mlp);
    for (enum channel i = STREAM; i < CHANNELS; i++)
        if (has(x->entry->settings, i))
            mlp_weights_back(m, x, &c->mlp, d->out[i], x->n, c->dweight[i], i != STREAM);
    mlp_back(m, x, &d->mlp, &c->mlp);
}

/* The gradients at queries, keys and values come first, and are kept until the stream's own: all go back at
 * once. */
static void backward(struct model *m, const struct rule_layer *x) {
    const struct dense *d = x->own;
    const struct common *c = rule_common(m, x);
    const struct own_stream *stream = c->stream;
    enum channel channel = channel_of(x);
    if (channel != STREAM) {
        make_inputs(m, x);
        own_input_backward(m, x, &d->input[channel], &c->input, &stream[channel]);
        m->ops->add(m->rows * m->stream, stream[channel].down, stream_rows(m, m->g));
        return;
    }
    sums_backward(m, x,
                  (real *[]){stream_rows(m, m->g), stream[QUERY].down, stream[KEY].down, stream[VALUE].down});
    weights_backward(m, x);
}

enum {
    SETTINGS = 1u << SETTING_PLACE | 1u << SETTING_CHANNELS | 1u << SETTING_DILATION | 1u << SETTING_PERIOD |
               1u << SETTING_LR_SCALE
};
static const struct rule_form form[] = {
    [STATIC] = {"static", SETTINGS}, [DYNAMIC] = {"dynamic", SETTINGS | 1u << SETTING_HIDDEN}};

const struct rule rule_dense = {.name = "dense",
                                .places = 1u << PLACE_BEFORE | 1u << PLACE_HEAD,
                                .forms = form,
                                .num_forms = 2,
                                .defaults = {.dilation = 1, .period = 1, .hidden = 16, .lr_scale = 1},
                                .edges = edges,
                                .connection_leaves = connection_leaves,
                                .layer_leaves = layer_leaves,
                                .projects = true,
                                .flops = flops,
                                .conflict = conflict,
                                .own_bytes = sizeof(struct dense),
                                .common_bytes = sizeof(struct common),
                                .find = find,
                                .lay_out = lay_out,
                                .lay_out_scratch = lay_out_scratch,
                                .forward = forward,
                                .backward = backward,
                                .again = again};
