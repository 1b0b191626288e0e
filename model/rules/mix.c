/* The rule `mix` between layers, the mended delta connection: x + Σ_j c_j ⊙ norm(u_j), u_j the output of a
 * node below, or what its layer has added to the stream (model.md, 12). Of form `static` c_j is a vector of
 * the stream's width, 0 at the start; `gated` adds to it each token's own weights, one for each group of
 * columns, of a small MLP: c_j = g_j + spread(U_j silu(V norm(x))), U_j 0 at the start too. It enters the
 * stream, or what queries, keys or values are projected from. */
#include "model/params/stream.h"
#include "model/rules/mlp.h"
#include "model/rules/norms.h"
#include "model/rules/own_input.h"
#include "model/rules/rules.h"

enum form { STATIC, GATED };
enum from { STATE, ADDED, BOTH };

/* What of a source: its output, what its layer has added. Each may have leaves of every connection. */
enum part { OUTPUT, ADDITION, PARTS };
enum { GAIN, OUT, LEAVES }; /* of each part; OUT of `gated` alone */
static const char *const leaf_name[PARTS][LEAVES] = {{"gain", "out.weight"},
                                                     {"added.gain", "added.out.weight"}};

struct mix {
    int policy;
    struct norms part[PARTS]; /* saved: its a, and rstd, so little that it is never computed again */
    struct tensor out[PARTS]; /* U [n, groups, H] */
    struct mlp mlp;           /* has V */
    struct own_input input;   /* at queries, keys and values */
};

struct common {
    struct mlp_scratch mlp;
    real *da[PARTS]; /* [R, n, groups] */
    struct own_input_scratch input;
    struct own_stream stream;
};

/* ------------------------------------------------------------------------------------- of a configuration */

static bool is_gated(const struct rule_config *settings) {
    return settings->form == GATED;
}

/* Does it enter queries, keys or values? */
static bool at_heads(const struct rule_config *settings) {
    return settings->place >= PLACE_QUERY;
}

/* Leaves of a connection are those of both parts, in order. */
static int leaves_of_part(const struct rule_config *settings) {
    return is_gated(settings) ? LEAVES : 1;
}

static int leaf_of(const struct rule_config *settings, enum part part) {
    return (int)part * leaves_of_part(settings);
}

/* What a source listed by the entry has. Below the embedding there is nothing: it is its own addition. */
static bool has_part(const struct rule_config *settings, int source, enum part part) {
    if (source < 0 || settings->from == STATE) return part == OUTPUT;
    return settings->from == BOTH || part == ADDITION;
}

static unsigned lacks(const struct rule_config *settings, int source) {
    unsigned all = (1u << leaves_of_part(settings)) - 1, without = 0;
    for (enum part part = OUTPUT; part < PARTS; part++)
        if (!has_part(settings, source, part)) without |= all << leaf_of(settings, part);
    return without;
}

/* The nodes right below those listed are sources without tensors of their own. */
static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    int listed = rule_edges(config, settings, layer, edge), n = listed, node[listed + 1];
    for (int i = 0; i < listed; i++) {
        node[i] = edge[i].source;
        edge[i].without = lacks(settings, node[i]);
    }
    for (int i = 0; i < listed && settings->from != STATE; i++)
        if (node[i] >= 0) n = rule_add_edge((struct edge){.source = node[i] - 1, .without = ~0u}, edge, n);
    return n;
}

static int connection_leaves(const struct model_config *config, const struct rule_config *settings,
                             struct leaf *leaf) {
    for (enum part part = OUTPUT; part < PARTS; part++) {
        struct leaf *of = leaf + leaf_of(settings, part);
        of[GAIN] = leaf_vector(leaf_name[part][GAIN], SPLIT_NONE, stream_width(config), 0);
        of[GAIN].lr_scale = settings->lr_scale;
        if (!is_gated(settings)) continue;
        of[OUT] = leaf_matrix(leaf_name[part][OUT], SPLIT_NONE, settings->groups, settings->hidden, 0);
        of[OUT].decays = false;
        of[OUT].elementwise = true;
    }
    return leaf_of(settings, PARTS);
}

static int layer_leaves(const struct model_config *config, const struct rule_config *settings,
                        struct leaf *leaf) {
    if (!is_gated(settings)) return 0;
    leaf[0] = mlp_leaf(config, settings);
    return 1;
}

/* Norm, product and sum; where both parts are read, of each edge twice. */
static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    double parts = settings->from == BOTH ? 2.0 * n : n;
    double input = at_heads(settings) ? own_input_flops(config, (enum rule_place)settings->place) : 0;
    if (!n) return 0;
    return input + 5.0 * (double)stream_width(config) * parts +
           (is_gated(settings) ? mlp_flops(config, settings, parts * settings->groups) : 0);
}

static const struct conflict *conflict(const struct model_config *config, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict uneven = {
        "groups of mix are expected to be as wide as each other: a number that divides model.hidden_size",
        {"model.rules[].groups", "model.hidden_size"}};
    (void)tensor, (void)sharing;
    if (is_gated(settings) && config->hidden_size % settings->groups) return &uneven;
    return at_heads(settings) ? own_input_conflict(config) : NULL;
}

/* ------------------------------------------------------------------------------------------------ creation
 */

static void find(struct model *m, const struct rule_layer *x) {
    const struct rule_config *settings = x->entry->settings;
    struct mix *mix = x->own;
    for (enum part part = OUTPUT; part < PARTS; part++) {
        int leaf = leaf_of(settings, part), n = norms_count(x, leaf);
        mix->part[part] = (struct norms){.n = n,
                                         .leaf = leaf,
                                         .added = part == ADDITION,
                                         .groups = is_gated(settings) ? settings->groups : 1};
        if (!n) continue;
        mix->part[part].gain = rule_find_connections(m, x, leaf_name[part][GAIN]);
        if (is_gated(settings)) mix->out[part] = rule_find_connections(m, x, leaf_name[part][OUT]);
    }
    if (is_gated(settings)) mlp_find(m, x, &mix->mlp);
    if (at_heads(settings)) own_input_find(m, x->layer, (enum rule_place)settings->place, &mix->input);
}

/* What layers share has room for as many as edges. */
static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    const struct rule_config *settings = x->entry->settings;
    struct mix *mix = x->own, *shared = shared_of_all;
    (void)T;
    mix->policy = x->policy;
    for (enum part part = OUTPUT; part < PARTS; part++) {
        long n = mix == shared ? x->n : mix->part[part].n;
        SAVE(m, mix, shared, part[part].rstd, m->rows_max * n, POLICY_NO_BACKWARD);
        if (!is_gated(settings)) continue;
        SAVE_BF16(m, mix, shared, part[part].a, m->rows_max * n * settings->groups, POLICY_SELECTIVE);
    }
    if (is_gated(settings)) mlp_lay_out(m, x, &mix->mlp, &shared->mlp);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    const struct rule_config *settings = rule->entry.settings;
    struct common *c = rule->common;
    if (at_heads(settings)) {
        own_input_lay_out_stream(m, &c->stream);
        own_input_lay_out_scratch(m, &c->input, T);
    }
    if (!is_gated(settings)) return;
    mlp_lay_out_scratch(m, settings, &c->mlp);
    for (enum part part = OUTPUT; m->training && part < PARTS; part++)
        c->da[part] = take(&m->scratch, m->rows_max * n * settings->groups);
}

/* -------------------------------------------------------------------------------------------------- passes
 */

/* The tokens' own weights. */
static void again(struct model *m, const struct rule_layer *x) {
    const struct mix *mix = x->own;
    const struct common *c = rule_common(m, x);
    if (!is_gated(x->entry->settings)) return;
    mlp_forward(m, x, &mix->mlp, &c->mlp);
    for (enum part part = OUTPUT; part < PARTS; part++) {
        long weights = mix->part[part].n * mix->part[part].groups;
        if (!weights) continue;
        m->ops->zero(m->rows * weights, mix->part[part].a);
        mlp_weights(m, x, &c->mlp, mix->out[part], weights, mix->part[part].a);
    }
}

static void add_parts(struct model *m, const struct rule_layer *x, real *out) {
    const struct mix *mix = x->own;
    for (enum part part = OUTPUT; part < PARTS; part++)
        if (mix->part[part].n) norms_forward(m, x, &mix->part[part], out);
}

/* The stream that a layer's queries, keys or values have in place of its own. */
static void make_input(struct model *m, const struct rule_layer *x, real *own) {
    m->ops->copy(m->rows * m->stream, rule_rows(m, x), own);
    add_parts(m, x, own);
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct mix *mix = x->own;
    struct common *c = rule_common(m, x);
    (void)sums;
    again(m, x);
    if (!x->heads) {
        add_parts(m, x, out);
        return;
    }
    make_input(m, x, c->stream.own);
    own_input_forward(m, x, &mix->input, &c->input, c->stream.own);
}

/* From g [R, W], own rows of the gradient of the stream that the parts were added to. */
static void parts_backward(struct model *m, const struct rule_layer *x, const real *g) {
    const struct mix *mix = x->own;
    const struct common *c = rule_common(m, x);
    for (enum part part = OUTPUT; part < PARTS; part++) {
        struct norms norms = mix->part[part];
        norms.da = c->da[part];
        if (norms.n) norms_backward(m, x, &norms, g);
    }
    if (!is_gated(x->entry->settings)) return;
    mlp_again(m, x, &mix->mlp, &c->mlp);
    for (enum part part = OUTPUT; part < PARTS; part++)
        if (mix->part[part].n)
            mlp_weights_back(m, x, &c->mlp, mix->out[part], mix->part[part].n * mix->part[part].groups,
                             c->da[part], part == ADDITION && mix->part[OUTPUT].n);
    mlp_back(m, x, &mix->mlp, &c->mlp);
}

static void backward(struct model *m, const struct rule_layer *x) {
    const struct mix *mix = x->own;
    struct common *c = rule_common(m, x);
    if (!x->heads) {
        parts_backward(m, x, stream_rows(m, m->g));
        return;
    }
    make_input(m, x, c->stream.own);
    own_input_backward(m, x, &mix->input, &c->input, &c->stream);
    parts_backward(m, x, c->stream.down);
    m->ops->add(m->rows * m->stream, c->stream.down, stream_rows(m, m->g));
}

enum {
    SETTINGS = 1u << SETTING_PLACE | 1u << SETTING_SOURCES | 1u << SETTING_DISTANCES | 1u << SETTING_FROM |
               1u << SETTING_LAYERS | 1u << SETTING_PERIOD | 1u << SETTING_LR_SCALE
};
static const struct rule_form forms[] = {
    [STATIC] = {"static", SETTINGS},
    [GATED] = {"gated", SETTINGS | 1u << SETTING_GROUPS | 1u << SETTING_HIDDEN}};

const struct rule rule_mix = {.name = "mix",
                              .places = 1u << PLACE_BEFORE | 1u << PLACE_AFTER | 1u << PLACE_QUERY |
                                        1u << PLACE_KEY | 1u << PLACE_VALUE,
                              .forms = forms,
                              .num_forms = 2,
                              .defaults = {.place = PLACE_BEFORE,
                                           .sources = {-1},
                                           .num_sources = 1,
                                           .distances = {2, 3, 5, 9},
                                           .num_distances = 4,
                                           .period = 1,
                                           .hidden = 16,
                                           .groups = 4,
                                           .lr_scale = 5},
                              .edges = edges,
                              .connection_leaves = connection_leaves,
                              .layer_leaves = layer_leaves,
                              .projects = true,
                              .flops = flops,
                              .conflict = conflict,
                              .own_bytes = sizeof(struct mix),
                              .common_bytes = sizeof(struct common),
                              .find = find,
                              .lay_out = lay_out,
                              .lay_out_scratch = lay_out_scratch,
                              .forward = forward,
                              .backward = backward,
                              .again = again};
