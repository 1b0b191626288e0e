/* Creates a model: finds its tensors in the parameter table and lays out every buffer of its passes, first to
 * count their bytes, then for real. A planned model gets addresses that nothing lies behind. */
#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "model/base/weight_gradients.h"
#include "model/params/exits.h"
#include "model/params/stream.h"
#include "model/pass/private.h"

#include <stdlib.h>

/* A model with what its folders have of their own. */
struct full_model {
    struct model model; /* first: freeing it frees all */
    struct trunk trunk;
    struct rules rules;
    struct pass_state passes;
    struct weight_gradients weight_gradients;
};

typedef void each(struct model *m, int layer);

/* Calls it for every layer of this rank. */
static void for_layers(struct model *m, each *call) {
    for (int c = 0; c < m->passes->chunks; c++)
        for (int l = m->passes->chunk[c].span.first; l < m->passes->chunk[c].span.end; l++) call(m, l);
}

/* Inverse norms that a rule between layers needs and no layer of the chunk computes (node_rstd). */
static void lay_out_rstd(struct model *m, const struct chunk *chunk, struct activation_set *activation_set) {
    if (!rules_read_rms(m)) return;
    for (int node = -1; node + 1 < chunk->span.end; node++)
        if ((node + 1 < chunk->span.first || rules_enter(m, node + 1, PLACE_BEFORE)) &&
            feeds(m, node, chunk->span))
            activation_set->rstd[1 + node] = take(&m->saved, m->rows_max);
}

static void lay_out_activation_set(struct model *m, const struct chunk *chunk,
                                   struct activation_set *activation_set, long T) {
    long rows = m->rows_max;
    if (chunk->first) activation_set->x0 = lay_out_node(m, chunk, activation_set, -1, T);
    for (int l = chunk->span.first; l < chunk->span.end; l++) {
        struct layer *layer = &activation_set->layer[l];
        copy_layer(layer, &m->trunk->held[l]);
        lay_out_layer(m, layer, T);
        rules_lay_out(m, activation_set, l, T);
        layer->rstd1 = take(&m->saved, rows);                    /* a later layer's connections may read it */
        layer->z = lay_out_node(m, chunk, activation_set, l, T); /* a later layer's source */
    }
    lay_out_rstd(m, chunk, activation_set);
}

/* Scratch of passes, and what they share. */
static void lay_out_scratch(struct model *m, long T, long positions) {
    struct pass_state *p = m->passes;
    long W = m->stream, ranks = m->tensor->size;
    bool first = p->chunk[0].first, last = p->chunk[p->chunks - 1].last, head = last;
    for (int c = 0; c < p->chunks; c++) head |= p->chunk[c].exits;
    m->sums = (T + ranks - 1) / ranks * ranks * W;
    if (!m->ops->device->host)
        p->rows_of_pass = arena_take(&p->tokens, (size_t)(T + m->batch) * sizeof *p->rows_of_pass);
    p->sums_of_pass = arena_take(&m->scratch, sizeof *p->sums_of_pass);
    lay_out_mixers_scratch(m, T, positions);
    lay_out_layer_scratch(m, T, head);
    rules_lay_out_scratch(m, T);
    if (!m->training) return;
    if (first && last && p->chunks == 1) p->full_g = take(&m->scratch, T * W);
    lay_out_source_gradients(m, T);
}

static void lay_out(struct model *m, long positions) {
    struct pass_state *p = m->passes;
    long T = m->batch * m->length;
    lay_out_scratch(m, T, positions);
    for_layers(m, share_layer);
    lay_out_shared_layer(m, T);
    for_layers(m, rules_share);
    rules_lay_out_shared(m, T);
    if (lay_out_turns(m, T)) lay_out_split(m, T);
    for (int c = 0; c < p->chunks; c++)
        for (int s = 0; s < p->chunk[c].activation_sets; s++)
            lay_out_activation_set(m, &p->chunk[c], &p->chunk[c].activation_set[s], T);
    lay_out_weight_sets(m);
}

/* What the chunk's layers keep, layers [num_layers]. */
static bool allocate_layers(struct model *m, const struct chunk *chunk, struct layer *layers) {
    bool there = true;
    for (int l = chunk->span.first; there && l < chunk->span.end; l++) {
        there = create_layer(m, l, &layers[l]);
        layers[l].mixing.inlet = rules_inlet(m, l);
    }
    return there;
}

static bool allocate_activation_sets(struct model *m, struct chunk *chunk) {
    size_t nodes = (size_t)m->config.num_layers + 1;
    chunk->activation_set = calloc((size_t)chunk->activation_sets, sizeof *chunk->activation_set);
    for (int s = 0; chunk->activation_set && s < chunk->activation_sets; s++) {
        struct activation_set *activation_set = &chunk->activation_set[s];
        activation_set->layer = calloc(nodes, sizeof *activation_set->layer);
        activation_set->rstd = calloc(nodes, sizeof *activation_set->rstd);
        activation_set->rstd_known = calloc(nodes, sizeof *activation_set->rstd_known);
        activation_set->kept = calloc(nodes, sizeof *activation_set->kept);
        activation_set->rows = calloc(nodes, sizeof *activation_set->rows);
        if (!activation_set->layer || !activation_set->rstd || !activation_set->rstd_known ||
            !activation_set->kept || !activation_set->rows ||
            !allocate_layers(m, chunk, activation_set->layer) ||
            !rules_create_layers(m, chunk->span, activation_set->rule))
            return false;
    }
    return chunk->activation_set;
}

/* What to compute again, layer by layer. */
static void set_policies(struct model *m, const struct model_part *part) {
    for (int l = 0; l < m->config.num_layers; l++) {
        struct layer *layer = &m->trunk->held[l];
        struct recompute policy = {POLICY_NONE, POLICY_NONE};
        if (part && part->recompute) policy = part->recompute[l];
        layer->policy = layer->mixing.policy = m->training ? policy.layer : POLICY_NO_BACKWARD;
        rules_set_policy(m, l, m->training ? policy.delta : POLICY_NO_BACKWARD);
    }
}

static bool has_exit(const struct model *m, struct span span) {
    bool any = false;
    for (int l = span.first; l < span.end; l++) any |= exit_of(&m->config, l) >= 0;
    return any;
}

/* The chunks of this rank, and what its passes keep account of. */
static int allocate(struct model *m, const struct model_part *part) {
    struct pass_state *p = m->passes;
    size_t nodes = (size_t)m->config.num_layers + 1;
    int stages = m->layout.stage ? m->layout.size[AXIS_PIPELINE] * m->layout.chunks : 1;
    p->chunks = m->layout.chunks;
    p->chunk = calloc((size_t)p->chunks, sizeof *p->chunk);
    p->restored = calloc(nodes, sizeof *p->restored);
    p->walk.owed = calloc(nodes, sizeof *p->walk.owed);
    m->trunk->held = calloc(nodes, sizeof *m->trunk->held);
    bool there =
        mixers_create(m) && rules_create(m) && p->chunk && p->restored && p->walk.owed && m->trunk->held;
    for (int c = 0; there && c < p->chunks; c++) {
        int stage = layout_stage(&m->layout, m->layout.index[AXIS_PIPELINE], c);
        p->chunk[c] =
            (struct chunk){.span = layout_span(&m->layout, c, m->config.num_layers),
                           .first = stage == 0,
                           .last = stage == stages - 1,
                           .exits = has_exit(m, layout_span(&m->layout, c, m->config.num_layers)),
                           .activation_sets = part && part->activation_sets ? part->activation_sets[c] : 1};
        there = allocate_layers(m, &p->chunk[c], m->trunk->held) && allocate_activation_sets(m, &p->chunk[c]);
    }
    if (!there) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", m->config.num_layers);
    set_policies(m, part);
    return 0;
}

/* Addresses for the weights and gradients of a planned model. */
static int dry_run_state(struct model *m) {
    struct arena *weights = &m->passes->weights;
    struct state *state = &m->passes->planned_state;
    weights->name = "weights";
    for (int round = 0; round < 2; round++) {
        state->weight = take(weights, m->table->total);
        state->gradient = m->training ? take(weights, m->table->total) : NULL;
        if (!round) TRY(arena_dry_run(weights));
    }
    m->state = state;
    return 0;
}

static int fill(struct model *m, const struct model_part *part, long positions) {
    TRY(mixers_validate_documents(m));
    TRY(mixers_validate_pieces(m));
    TRY(edges_create(&m->config, &m->edges));
    TRY(allocate(m, part));
    if (m->planned) TRY(dry_run_state(m));
    TRY(rules_prepare(m));
    TRY(create_weight_sets(m, part));
    find_ends(m);
    for_layers(m, find_layer);
    for_layers(m, rules_find);
    lay_out(m, positions);
    int (*const reserve)(struct arena *) = m->planned ? arena_dry_run : arena_reserve;
    TRY(reserve(&m->saved));
    TRY(reserve(&m->nodes));
    TRY(reserve(&m->scratch));
    TRY(reserve(&m->staging));
    if (m->passes->tokens.used) TRY(reserve(&m->passes->tokens));
    TRY(axis_reserve(m->tensor, m->sums));
    TRY(axis_reserve(m->context, m->context_sums));
    TRY(reserve_split_sums(m));
    lay_out(m, positions);
    return m->planned ? 0 : fill_mixers(m, positions);
}

int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, const struct model_part *part, long batch, long length, long positions,
                bool training, struct model **out) {
    struct full_model *full = calloc(1, sizeof *full);
    *out = NULL;
    if (!full) return gdn_fail(GDN_INTERNAL, "out of memory for a model");
    struct model *m = &full->model;
    *m = (struct model){.config = *config,
                        .table = table,
                        .state = state,
                        .ops = ops,
                        .layout = part ? *part->layout : layout_full(),
                        .stream = stream_width(config),
                        .alone = axis_alone("tensor"),
                        .uncut = axis_alone("context"),
                        .batch = batch,
                        .length = length,
                        .training = training,
                        .planned = !state,
                        .compress = part && training ? part->compress_sources : 0,
                        .bf16_activations = part && training && part->bf16_activations,
                        .bf16_stream = training && config->residual == RESIDUAL_BF16,
                        .documents = part && part->documents,
                        .padding = part && part->padding,
                        .saved = {.name = "activations", .device = ops->device},
                        .nodes = {.name = "sources", .device = ops->device},
                        .scratch = {.name = "scratch buffers", .device = ops->device},
                        .staging.name = "buffers between host and device",
                        .trunk = &full->trunk,
                        .rules = &full->rules,
                        .passes = &full->passes,
                        .weight_gradients = &full->weight_gradients};
    m->passes->tokens = (struct arena){.name = "tokens", .device = ops->device};
    long ranks = m->layout.size[AXIS_TENSOR], index = m->layout.index[AXIS_TENSOR];
    m->alone.ops = ops;
    m->tensor = part ? part->tensor : &m->alone;
    m->tensor->wire = m->layout.wire;
    m->uncut.ops = ops;
    m->context = part && part->context ? part->context : &m->uncut;
    m->context_exchange = part ? part->context_exchange : 0;
    m->rows_divided = m->layout.sequence_parallel && ranks > 1;
    m->rows_max = m->rows_divided ? (batch * length + ranks - 1) / ranks : batch * length;
    m->trunk->F = config->intermediate_size / ranks;
    m->trunk->first_token = config->vocab_size * index / ranks;
    m->trunk->V = config->vocab_size * (index + 1) / ranks - m->trunk->first_token;
    if (m->context->size > 1) positions *= 2 * m->context->size;
    int status = fill(m, part, positions);
    if (status)
        model_free(m);
    else
        *out = m;
    return status;
}

int model_create(const struct model_config *config, const struct table *table, const struct state *state,
                 const struct ops *ops, const struct model_part *part, long batch, long length, bool training,
                 struct model **out) {
    return model_build(config, table, state, ops, part, batch, length, length, training, out);
}

int model_create_planned(const struct model_config *config, const struct table *table,
                         const struct model_part *part, long batch, long length, bool training,
                         struct model **out) {
    return model_build(config, table, NULL, ops_find("count"), part, batch, length, length, training, out);
}

/* layers [num_layers], or NULL. */
static void free_layers(const struct model *m, struct layer *layers) {
    for (int l = 0; layers && l < m->config.num_layers; l++) free_layer(&layers[l]);
    free(layers);
}

void model_free(struct model *model) {
    if (!model) return;
    for (int c = 0; model->passes->chunk && c < model->passes->chunks; c++) {
        struct chunk *chunk = &model->passes->chunk[c];
        for (int s = 0; chunk->activation_set && s < chunk->activation_sets; s++) {
            free_layers(model, chunk->activation_set[s].layer);
            for (int r = 0; r < MAX_RULES; r++) rules_free_layers(model, chunk->activation_set[s].rule[r]);
            free(chunk->activation_set[s].rstd);
            free(chunk->activation_set[s].rstd_known);
            free(chunk->activation_set[s].kept);
            free(chunk->activation_set[s].rows);
        }
        free(chunk->activation_set);
    }
    arena_free(&model->saved);
    arena_free(&model->nodes);
    arena_free(&model->scratch);
    arena_free(&model->passes->weights);
    arena_free(&model->staging);
    arena_free(&model->passes->tokens);
    edges_free(&model->edges);
    axis_host_free(&model->passes->host_sums);
    free(model->passes->chunk);
    free_layers(model, model->trunk->held);
    mixers_free(model);
    rules_free(model);
    free_weight_sets(model);
    free(model->passes->restored);
    free(model->passes->walk.owed);
    free(model); /* and the rest of its struct whole */
}

void model_memory(const struct model *model, struct model_memory *out) {
    *out = (struct model_memory){.activations = (long)model->saved.size,
                                 .sources = (long)model->nodes.size,
                                 .workspace = (long)model->scratch.size};
}

int model_weight_ids(const struct model_config *config) {
    return first_weight(config, config->num_layers);
}
