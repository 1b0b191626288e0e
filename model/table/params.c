/* The parameter table of a rank, from the leaves of all that a model is made of. Initial weights are in
 * init.c. */
#include "model/table/params.h"
#include "dist/layout/shard.h"
#include "kernels/base/status.h"
#include "model/mixer/mixer.h"
#include "model/model.h"
#include "model/params/edges.h"
#include "model/params/leaf.h"
#include "model/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every group of tensors that one GEMM reads starts on a cache line; within a group they are neighbours. */
enum { GROUP_ALIGNMENT = 16 };

/* Leaves of a layer. */
enum { MAX_LEAVES = 16 };

/* Rows are collected first, in the order of the model, and then given their places in the flat buffers. */
struct pending {
    struct row row;
    int first_owner; /* row.owner's place in builder.owner */
    int group;
};

struct builder {
    const struct layout *layout;
    const struct edges *edges;
    const int *projector; /* [edges->count] stage whose rank projects an edge's source; −1: none */
    int num_layers;
    struct pending *pending;
    int count, capacity;
    int group, group_first; /* the group that is open and its first row */
    int *owner;             /* of all places, one after the other */
    int owners, owner_capacity;
    bool failed;
};

/* What a row's name does not tell. */
struct place {
    const struct rule_entry *rule; /* that has it; NULL: none */
    int layer, distance, edge, edges;
    bool select, whole;      /* whole: of a connection that tensor ranks do not divide */
    int first_owner, owners; /* pipeline ranks that hold it, by rising rank, in builder.owner */
};

static bool grow_owners(struct builder *b) {
    int capacity = b->owner_capacity ? 2 * b->owner_capacity : 64;
    int *grown = realloc(b->owner, (size_t)capacity * sizeof *grown);
    if (!grown) return false;
    b->owner = grown;
    b->owner_capacity = capacity;
    return true;
}

/* The pipeline rank of a stage holds the newest place's tensors too, if it does not already. */
static void add_owner(struct builder *b, struct place *place, int stage) {
    int rank = stage % b->layout->size[AXIS_PIPELINE], at = b->owners;
    for (int i = place->first_owner; i < b->owners; i++)
        if (b->owner[i] == rank) return;
    if (b->owners == b->owner_capacity && !grow_owners(b)) {
        b->failed = true;
        return;
    }
    for (; at > place->first_owner && b->owner[at - 1] > rank; at--) b->owner[at] = b->owner[at - 1];
    b->owner[at] = rank;
    b->owners++;
    place->owners++;
}

/* A place of a layer, whose rank holds it. */
static struct place layer_place(struct builder *b, int layer) {
    struct place place = {.layer = layer, .first_owner = b->owners};
    add_owner(b, &place, layout_stage_of(b->layout, layer));
    return place;
}

static bool held(const struct builder *b, const struct place *place) {
    for (int i = 0; i < place->owners; i++)
        if (b->owner[place->first_owner + i] == b->layout->index[AXIS_PIPELINE]) return true;
    return false;
}

/* Closes the open group and settles its zone: by its largest tensor, and shared where any tensor is. */
static void start_group(struct builder *b) {
    long largest = 0;
    bool shared = false;
    for (int i = b->group_first; i < b->count; i++) {
        const struct row *row = &b->pending[i].row;
        if (row->count > largest) largest = row->count;
        if (row->owners > 1) shared = true;
    }
    bool small = largest < b->layout->small;
    for (int i = b->group_first; i < b->count; i++) {
        struct row *row = &b->pending[i].row;
        if (shared)
            row->zone = small ? ZONE_SHARED_SMALL : ZONE_SHARED_LARGE;
        else
            row->zone = small ? ZONE_SMALL : ZONE_LARGE, row->owners = 0;
    }
    b->group++;
    b->group_first = b->count;
}

static bool grow(struct builder *b) {
    int capacity = b->capacity ? 2 * b->capacity : 64;
    struct pending *grown = realloc(b->pending, (size_t)capacity * sizeof *grown);
    if (!grown) return false;
    b->pending = grown;
    b->capacity = capacity;
    return true;
}

/* The rank's part of a tensor: rows or columns. */
static void take_part(const struct layout *l, struct row *row) {
    row->local[0] = row->shape[0], row->local[1] = row->shape[1];
    if (row->split != SPLIT_NONE) {
        int side = row->split == SPLIT_ROWS ? 0 : 1;
        int ranks = l->size[AXIS_TENSOR], index = l->index[AXIS_TENSOR];
        row->start[side] = split_first(row->shape[side], ranks, index);
        row->local[side] = split_first(row->shape[side], ranks, index + 1) - row->start[side];
    }
    row->count = row->local[0] * row->local[1];
}

/* Connections leave parts of a sum in what all tensor ranks hold, the trunk's norms do where each rank
 * normalises tokens of its own. */
static bool is_partial(const struct layout *l, const struct place *place, const struct row *row) {
    if (l->size[AXIS_TENSOR] == 1 || row->split != SPLIT_NONE) return false;
    if (row->select) return true;
    if (row->distance) return !place->whole;
    return l->sequence_parallel;
}

static bool is_counted(const struct builder *b, const struct place *place, const struct row *row) {
    const struct layout *l = b->layout;
    bool lowest_stage = b->owner[place->first_owner] == l->index[AXIS_PIPELINE];
    bool own = row->split != SPLIT_NONE || place->whole;
    return lowest_stage && (own || l->index[AXIS_TENSOR] == 0);
}

/* In one go: plans of many ranks have thousands of tables. */
static void name_row(const struct builder *b, const struct place *place, const char *leaf, struct row *row) {
    char *name = row->name, rule[RULE_NAME];
    const size_t size = sizeof row->name;
    if (place->rule) rule_name(place->rule, rule);
    if (place->rule && place->distance)
        snprintf(name, size, "layers.%d.%s.%d.%s", place->layer, rule, place->distance, leaf);
    else if (place->rule)
        snprintf(name, size, "layers.%d.%s.%s", place->layer, rule, leaf);
    else if (place->layer >= 0 && place->layer < b->num_layers)
        snprintf(name, size, "layers.%d.%s", place->layer, leaf);
    else
        snprintf(name, size, "%s", leaf);
}

/* Adds a leaf's row, if the rank is one of its owners. */
static void add(struct builder *b, struct place place, const struct leaf *leaf) {
    if (!leaf->joined && !place.distance) start_group(b);
    if (!held(b, &place)) return;
    if (b->count == b->capacity && !grow(b)) {
        b->failed = true;
        return;
    }
    struct row row = {.ndim = leaf->in ? 2 : 1,
                      .shape = {leaf->out, leaf->in ? leaf->in : 1},
                      .split = place.whole ? SPLIT_NONE : leaf->split,
                      .transposed = leaf->transposed,
                      .decay = leaf->decays,
                      .own_lr_scale = leaf->lr_scale,
                      .own_weight_decay = leaf->weight_decay,
                      .heads = leaf->heads,
                      .joined = leaf->joined,
                      .start_width = leaf->width,
                      .start_value = leaf->value,
                      .layer = place.layer,
                      .distance = place.distance,
                      .edge = place.edge,
                      .edges = place.edges,
                      .select = place.select,
                      .owners = place.owners};
    take_part(b->layout, &row);
    row.alone = place.whole;
    row.partial = is_partial(b->layout, &place, &row);
    row.counted = is_counted(b, &place, &row);
    name_row(b, &place, leaf->name, &row);
    b->pending[b->count++] = (struct pending){row, place.first_owner, b->group};
}

/* How many edges of rule r lead into a layer; they begin with `first`, where rule r − 1's end. */
static int edges_into(const struct builder *b, int layer, int r, int first) {
    int e = first;
    while (e < b->edges->first[layer + 1] && b->edges->edge[e].rule == r) e++;
    return e - first;
}

/* One leaf of each of a rule's n connections into the layer, neighbours in memory: a stack that one GEMM
 * reads. */
static void add_stack(struct builder *b, const struct rule_entry *rule, int first, int n,
                      const struct leaf *leaf) {
    bool whole = rule->row->by_connection && layout_by_connection(b->layout);
    start_group(b);
    for (int e = first; e < first + n; e++) {
        const struct edge *edge = &b->edges->edge[e];
        if (whole && edge->connection % b->layout->size[AXIS_TENSOR] != b->layout->index[AXIS_TENSOR])
            continue;
        struct place place = layer_place(b, edge->target);
        place.rule = rule;
        place.distance = edge->distance;
        place.edge = e, place.edges = 1;
        place.whole = whole;
        if (leaf->projects && b->projector[e] >= 0) add_owner(b, &place, b->projector[e]);
        add(b, place, leaf);
    }
}

/* A leaf that a rule's connections into the layer share: some of them project sources. */
static void add_shared(struct builder *b, const struct rule_entry *rule, int first, int n,
                       const struct leaf *leaf) {
    struct place place = layer_place(b, b->edges->edge[first].target);
    place.rule = rule;
    place.select = true;
    place.edge = first, place.edges = n;
    for (int e = first; leaf->projects && e < first + n; e++)
        if (b->projector[e] >= 0) add_owner(b, &place, b->projector[e]);
    add(b, place, leaf);
}

static void add_rules(struct builder *b, const struct model_config *m, int layer) {
    struct rule_entry rule[MAX_RULES];
    struct leaf leaf[RULE_LEAVES];
    int first = b->edges->first[layer], n;
    for (int r = 0, count = rules_of(m, rule); r < count; r++, first += n) {
        n = edges_into(b, layer, r, first);
        if (!n) continue;
        const struct rule_entry *x = &rule[r];
        int own = x->row->connection_leaves ? x->row->connection_leaves(m, x->settings, leaf) : 0;
        for (int i = 0; i < own; i++) add_stack(b, x, first, n, &leaf[i]);
        int shared = x->row->layer_leaves ? x->row->layer_leaves(m, x->settings, leaf) : 0;
        for (int i = 0; i < shared; i++) add_shared(b, x, first, n, &leaf[i]);
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
    return n;
}

static void add_layer(struct builder *b, const struct model_config *m, int layer) {
    struct leaf leaf[MAX_LEAVES];
    struct place place = layer_place(b, layer);
    for (int i = 0, n = layer_leaves(m, layer, leaf); i < n; i++) add(b, place, &leaf[i]);
    add_rules(b, m, layer);
}

static void add_model(struct builder *b, const struct model_config *m) {
    int L = m->num_layers;
    long D = m->hidden_size, V = m->vocab_size;
    const struct leaf embed = leaf_matrix("embed_tokens.weight", SPLIT_ROWS, V, D, LEAF_WIDTH),
                      norm = leaf_vector("norm.weight", SPLIT_NONE, D, 1),
                      head = leaf_matrix("lm_head.weight", SPLIT_ROWS, V, D, LEAF_WIDTH);
    struct place embedding = layer_place(b, -1);
    if (m->tie_embeddings) add_owner(b, &embedding, layout_stage_of(b->layout, L));
    add(b, embedding, &embed);
    for (int layer = 0; layer < L; layer++) add_layer(b, m, layer);
    struct place last = layer_place(b, L);
    add(b, last, &norm);
    if (!m->tie_embeddings) add(b, last, &head);
    start_group(b); /* closes the last */
}

static long round_up(long n, long grain) {
    return (n + grain - 1) / grain * grain;
}

static int by_name(const void *a, const void *b, void *context) {
    const struct row *row = context;
    return strcmp(row[*(const int *)a].name, row[*(const int *)b].name);
}

static int index_names(struct table *table) {
    size_t rows = (size_t)table->rows;
    table->by_name = malloc((rows + 1) * sizeof *table->by_name);
    if (!table->by_name) return 1;
    for (int i = 0; i < table->rows; i++) table->by_name[i] = i;
    qsort_r(table->by_name, rows, sizeof *table->by_name, by_name, table->row);
    return 0;
}

/* Gives every row its place: zone by zone, each in the order of the model. */
static int place_rows(struct builder *b, struct table *out) {
    struct row *row = malloc((size_t)(b->count ? b->count : 1) * sizeof *row);
    if (!row) return 1;
    *out = (struct table){.row = row};
    for (int zone = 0; zone < ZONES; zone++) {
        int group = -1;
        out->zone[zone] = out->total;
        for (int i = 0; i < b->count; i++) {
            const struct pending *pending = &b->pending[i];
            if ((int)pending->row.zone != zone) continue;
            if (pending->group != group) out->total = round_up(out->total, GROUP_ALIGNMENT);
            group = pending->group;
            row[out->rows] = pending->row;
            row[out->rows].owner = b->owner + pending->first_owner;
            row[out->rows++].offset = out->total;
            out->total += pending->row.count;
        }
        out->total = round_up(out->total, (long)b->layout->size[AXIS_COPIES] * SHARD_GRAIN);
    }
    out->zone[ZONES] = out->total;
    out->owner = b->owner;
    b->owner = NULL;
    return index_names(out);
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
    if (!b->failed && !place_rows(b, out)) return 0;
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
