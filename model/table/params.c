/* The parameter table of a rank, from the leaves of all that a model is made of. Initial weights are in
 * init.c. */
#include "model/table/params.h"
#include "kernels/base/status.h"
#include "model/mixer/mixer.h"
#include "model/model.h"
#include "model/params/edges.h"
#include "model/params/exits.h"
#include "model/rules/rules.h"
#include "model/table/builder.h"

#include <stdlib.h>
#include <string.h>

/* Leaves of a layer: its mixer's, two norms, three of the MLP, an exit's norm. */
enum { MAX_LEAVES = MIXER_LEAVES + 6 };

/* How many edges of rule r lead into a layer; they begin with `first`, where rule r − 1's end. */
static int edges_into(const struct builder *b, int layer, int r, int first) {
    int e = first;
    while (e < b->edges->first[layer + 1] && b->edges->edge[e].rule == r) e++;
    return e - first;
}

/* A rule in a layer. */
struct into {
    const struct rule_entry *rule;
    int number, layer;
    int first, n; /* its edges */
};

static struct place rule_place(struct builder *b, const struct into *x) {
    struct place place = builder_place(b, x->layer);
    place.rule = x->rule;
    place.number = x->number;
    return place;
}

/* One leaf of each of its connections that has it, the row's i-th: neighbours in memory, a stack that one
 * GEMM reads. */
static void add_stack(struct builder *b, const struct into *x, const struct leaf *leaf, int i) {
    bool whole = x->rule->row->by_connection && layout_by_connection(b->layout);
    builder_group(b);
    for (int e = x->first; e < x->first + x->n; e++) {
        const struct edge *edge = &b->edges->edge[e];
        if (edge->without >> i & 1) continue;
        if (whole && edge->connection % b->layout->size[AXIS_TENSOR] != b->layout->index[AXIS_TENSOR])
            continue;
        struct place place = rule_place(b, x);
        place.distance = edge->distance;
        place.edge = e, place.edges = 1;
        place.whole = whole;
        if (leaf->projects && b->projector[e] >= 0) builder_own(b, &place, b->projector[e]);
        builder_add(b, place, leaf);
    }
}

/* A leaf that its connections share: some of them project sources. */
static void add_shared(struct builder *b, const struct into *x, const struct leaf *leaf) {
    struct place place = rule_place(b, x);
    place.select = true;
    place.edge = x->first, place.edges = x->n;
    for (int e = x->first; leaf->projects && e < x->first + x->n; e++)
        if (b->projector[e] >= 0) builder_own(b, &place, b->projector[e]);
    builder_add(b, place, leaf);
}

static void add_rule(struct builder *b, const struct model_config *m, const struct into *x) {
    const struct rule *row = x->rule->row;
    const struct rule_config *settings = x->rule->settings;
    struct leaf leaf[RULE_LEAVES];
    int own = row->connection_leaves ? row->connection_leaves(m, settings, leaf) : 0;
    for (int i = 0; i < own; i++) add_stack(b, x, &leaf[i], i);
    int shared = row->layer_leaves ? row->layer_leaves(m, settings, leaf) : 0;
    for (int i = 0; i < shared; i++) add_shared(b, x, &leaf[i]);
}

static void add_rules(struct builder *b, const struct model_config *m, int layer) {
    struct rule_entry rule[MAX_RULES];
    int first = b->edges->first[layer];
    for (int r = 0, count = rules_of(m, rule); r < count; r++) {
        const struct into x = {&rule[r], r, layer, first, edges_into(b, layer, r, first)};
        if (x.n || rule_enters_alone(x.rule, layer)) add_rule(b, m, &x);
        first += x.n;
    }
}

/* The leaves of a layer without its rules; returns how many. */
static int layer_leaves(const struct model_config *m, int layer, struct leaf *leaf) {
    long D = m->hidden_size, F = m->intermediate_size;
    int n = 0;
    leaf[n++] = leaf_vector("input_layernorm.weight", SPLIT_NONE, D, 1);
    n += mixer_of(m, layer)->leaves(m, leaf + n);
    leaf[n++] = leaf_vector("post_attention_layernorm.weight", SPLIT_NONE, D, 1);
    leaf[n++] = leaf_matrix("mlp.gate_proj.weight", SPLIT_ROWS, F, D, LEAF_WIDTH); /* gate, up: one GEMM */
    leaf[n] = leaf_matrix("mlp.up_proj.weight", SPLIT_ROWS, F, D, LEAF_WIDTH), leaf[n++].joined = true;
    leaf[n++] = leaf_matrix("mlp.down_proj.weight", SPLIT_COLUMNS, D, F, leaf_output_width(m->num_layers));
    if (exit_of(m, layer) >= 0) leaf[n++] = leaf_vector("exit_norm.weight", SPLIT_NONE, D, 1);
    return n;
}

static bool borrows(const struct rule_entry *rule, const char *leaf) {
    const char *const *name = rule->row->borrowed ? rule->row->borrowed(rule->settings) : NULL;
    while (name && *name && strcmp(*name, leaf) != 0) name++;
    return name && *name;
}

/* The place of a leaf of the first layer: stages that borrow it hold it too. */
static struct place first_place(struct builder *b, const struct model_config *m, const char *leaf) {
    struct rule_entry rule[MAX_RULES];
    struct place place = builder_place(b, 0);
    for (int r = 0, count = rules_of(m, rule); r < count; r++)
        for (int e = 0; borrows(&rule[r], leaf) && e < b->edges->count; e++)
            if (b->edges->edge[e].rule == r)
                builder_own(b, &place, layout_stage_of(b->layout, b->edges->edge[e].target));
    return place;
}

static void add_layer(struct builder *b, const struct model_config *m, int layer) {
    struct leaf leaf[MAX_LEAVES];
    for (int i = 0, n = layer_leaves(m, layer, leaf); i < n; i++)
        builder_add(b, layer ? builder_place(b, layer) : first_place(b, m, leaf[i].name), &leaf[i]);
    add_rules(b, m, layer);
}

/* Stages with exits hold the head's weights too. */
static void own_head(struct builder *b, const struct model_config *m, struct place *place) {
    builder_own(b, place, layout_stage_of(b->layout, m->num_layers));
    for (int i = 0; i < m->exit.num_layers; i++)
        builder_own(b, place, layout_stage_of(b->layout, m->exit.layers[i]));
}

/* A head of its own stands where the last gradients of it are added: at the lowest exit. */
static void add_head(struct builder *b, const struct model_config *m, int layer) {
    const struct leaf head = leaf_matrix("lm_head.weight", SPLIT_ROWS, m->vocab_size, m->hidden_size, LEAF_WIDTH);
    const int lowest = m->exit.num_layers ? m->exit.layers[0] : m->num_layers;
    if (m->tie_embeddings || layer != lowest) return;
    struct place place = builder_place(b, layer);
    place.head = true;
    own_head(b, m, &place);
    builder_add(b, place, &head);
}

static void add_model(struct builder *b, const struct model_config *m) {
    int L = m->num_layers;
    long D = m->hidden_size, V = m->vocab_size;
    const struct leaf embed = leaf_matrix("embed_tokens.weight", SPLIT_ROWS, V, D, LEAF_WIDTH),
                      norm = leaf_vector("norm.weight", SPLIT_NONE, D, 1);
    struct place embedding = builder_place(b, -1);
    if (m->tie_embeddings) own_head(b, m, &embedding);
    builder_add(b, embedding, &embed);
    for (int layer = 0; layer < L; layer++) {
        add_layer(b, m, layer);
        add_head(b, m, layer);
    }
    builder_add(b, builder_place(b, L), &norm);
    add_head(b, m, L);
    builder_group(b);
}

/* Fills projector [edges->count]: the stage whose rank projects an edge's source, or −1. */
static int find_projectors(const struct model_config *model, const struct layout *layout,
                           const struct edges *edges, int *projector) {
    struct route_widths widths = model_route_widths(model, layout);
    for (int e = 0; e < edges->count; e++) projector[e] = -1;
    if (!widths.narrow || !layout->stage) return 0;
    struct routes routes;
    TRY(routes_create(edges, NULL, layout, &widths, &routes));
    if (edges->count) memcpy(projector, routes.projector, (size_t)edges->count * sizeof *projector);
    routes_free(&routes);
    return 0;
}

/* Flat buffers are counted in longs, their bytes too. */
static int validate_countable(const struct model_config *m, const struct builder *b) {
    double weights = 0, max = 0x1p56;
    for (int i = 0; i < b->count; i++)
        weights += (double)b->pending[i].row.shape[0] * (double)b->pending[i].row.shape[1];
    if (weights < max) return 0;
    return gdn_fail(
        GDN_INPUT,
        "model.vocab_size %d, hidden_size %d, intermediate_size %d, num_layers %d and model.delta "
        "together give %.3g weights; fewer than %.3g are expected",
        m->vocab_size, m->hidden_size, m->intermediate_size, m->num_layers, weights, max);
}

static int build(const struct model_config *model, struct builder *b, int *projector, struct table *out) {
    TRY(find_projectors(model, b->layout, b->edges, projector));
    add_model(b, model);
    if (!b->failed) TRY(validate_countable(model, b));
    if (!b->failed && !builder_finish(b, out)) return 0;
    params_free(out);
    return gdn_fail(GDN_INTERNAL, "out of memory for the parameter table of %d layers", model->num_layers);
}

int params_create(const struct model_config *model, const struct layout *layout, struct table *out) {
    const struct layout full = layout_full();
    struct edges edges;
    *out = (struct table){0};
    TRY(edges_create(model, &edges));
    int *projector = malloc((size_t)(edges.count + 1) * sizeof *projector);
    struct builder b = {.layout = layout ? layout : &full,
                        .edges = &edges,
                        .projector = projector,
                        .num_layers = model->num_layers};
    int status = projector ? build(model, &b, projector, out)
                           : gdn_fail(GDN_INTERNAL, "out of memory for %d connections", edges.count);
    free(projector);
    free(b.pending);
    free(b.owner);
    edges_free(&edges);
    return status;
}

void params_free(struct table *table) {
    free(table->row);
    free(table->owner);
    free(table->by_name);
    *table = (struct table){0};
}
