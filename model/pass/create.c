/* Creates a model: finds its tensors in the parameter table and lays out every buffer of its passes, first to
 * count their bytes, then for real. A planned model gets addresses that nothing lies behind. */
#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "model/pass/private.h"

#include <stdlib.h>

/* A model with what its folders have of their own. */
struct whole_model {
    struct model model; /* first: freeing it frees all */
    struct attention_state attention;
    struct trunk trunk;
    struct delta_state delta;
    struct pass_state passes;
};

typedef void each(struct model *m, int layer);

/* Calls it for every layer of this rank. */
static void for_layers(struct model *m, each *call) {
    for (int c = 0; c < m->passes->chunks; c++)
        for (int l = m->passes->chunk[c].span.first; l < m->passes->chunk[c].span.end; l++) call(m, l);
}

/* Inverse norms that selection needs and no layer of the chunk computes (node_rstd). */
static void lay_out_rstd(struct model *m, const struct chunk *chunk, struct slot *slot) {
    if (m->config.delta.aggregate != AGGREGATE_ATTENTION) return;
    for (int node = -1; node + 1 < chunk->span.first; node++)
        if (feeds(m, node, chunk->span)) slot->rstd[1 + node] = take(&m->saved, m->rows_most);
}

static void lay_out_slot(struct model *m, const struct chunk *chunk, struct slot *slot, long T) {
    long D = m->config.hidden_size, rows = m->rows_most;
    if (chunk->first) slot->x0 = lay_out_node(m, chunk, slot, -1, T);
    for (int l = chunk->span.first; l < chunk->span.end; l++) {
        struct layer *layer = &slot->layer[l];
        struct connections *connections = &slot->connections[l];
        *layer = m->trunk->held[l];
        *connections = m->delta->held[l];
        lay_out_layer(m, layer, T);
        lay_out_connections(m, connections, T);
        layer->rstd1 = take(&m->saved, rows);          /* a later layer's selection reads it */
        layer->z = lay_out_node(m, chunk, slot, l, T); /* a later layer's source */
        layer->y = !connections->n ? NULL : m->training ? take(&m->saved, rows * D) : m->trunk->t2;
    }
    lay_out_rstd(m, chunk, slot);
}

/* Scratch of passes, and what they share. */
static void lay_out_scratch(struct model *m, long T, long positions) {
    struct pass_state *p = m->passes;
    long D = m->config.hidden_size, ranks = m->tensor->size;
    bool first = p->chunk[0].first, last = p->chunk[p->chunks - 1].last;
    m->sums = (T + ranks - 1) / ranks * ranks * D;
    if (!m->ops->device->host)
        p->rows_of_pass = arena_take(&p->tokens, (size_t)(T + m->batch) * sizeof *p->rows_of_pass);
    p->sums_of_pass = arena_take(&m->scratch, sizeof *p->sums_of_pass);
    lay_out_attention_scratch(m, T, positions);
    lay_out_layer_scratch(m, T, last);
    lay_out_delta_scratch(m, T);
    if (!m->training) return;
    if (first && last && p->chunks == 1) p->whole_g = take(&m->scratch, T * D);
    lay_out_deposits(m, T);
}

static void lay_out(struct model *m, long positions) {
    struct pass_state *p = m->passes;
    long T = m->batch * m->length;
    lay_out_scratch(m, T, positions);
    for_layers(m, share_layer);
    lay_out_shared_layer(m, T);
    for_layers(m, share_connections);
    lay_out_shared_connections(m, T);
    if (lay_out_turns(m, T) && m->compress > 0) lay_out_split(m, T);
    for (int c = 0; c < p->chunks; c++)
        for (int s = 0; s < p->chunk[c].slots; s++) lay_out_slot(m, &p->chunk[c], &p->chunk[c].slot[s], T);
}

static bool allocate_slots(struct model *m, struct chunk *chunk) {
    size_t nodes = (size_t)m->config.num_layers + 1;
    chunk->slot = calloc((size_t)chunk->slots, sizeof *chunk->slot);
    for (int s = 0; chunk->slot && s < chunk->slots; s++) {
        struct slot *slot = &chunk->slot[s];
        slot->layer = calloc(nodes, sizeof *slot->layer);
        slot->connections = calloc(nodes, sizeof *slot->connections);
        slot->rstd = calloc(nodes, sizeof *slot->rstd);
        slot->rstd_known = calloc(nodes, sizeof *slot->rstd_known);
        slot->packed = calloc(nodes, sizeof *slot->packed);
        slot->rows = calloc(nodes, sizeof *slot->rows);
        if (!slot->layer || !slot->connections || !slot->rstd || !slot->rstd_known || !slot->packed ||
            !slot->rows)
            return false;
    }
    return chunk->slot;
}

/* What to compute again, layer by layer. */
static void set_levels(struct model *m, const struct model_part *part) {
    for (int l = 0; l < m->config.num_layers; l++) {
        struct layer *layer = &m->trunk->held[l];
        struct recompute level = {LEVEL_NONE, LEVEL_NONE};
        if (part && part->recompute) level = part->recompute[l];
        layer->level = layer->attention.level = m->training ? level.layer : LEVEL_NOTHING;
        m->delta->held[l].level = m->training ? level.delta : LEVEL_NOTHING;
    }
}

/* The chunks of this rank, and what its passes keep account of. */
static int allocate(struct model *m, const struct model_part *part) {
    struct pass_state *p = m->passes;
    size_t nodes = (size_t)m->config.num_layers + 1;
    int stages = m->layout.stage ? m->layout.pipeline * m->layout.chunks : 1;
    p->chunks = m->layout.chunks;
    p->chunk = calloc((size_t)p->chunks, sizeof *p->chunk);
    p->unpacked = calloc(nodes, sizeof *p->unpacked);
    p->walk.owed = calloc(nodes, sizeof *p->walk.owed);
    m->trunk->held = calloc(nodes, sizeof *m->trunk->held);
    m->delta->held = calloc(nodes, sizeof *m->delta->held);
    m->delta->deposit = calloc(nodes, sizeof *m->delta->deposit);
    bool there =
        p->chunk && p->unpacked && p->walk.owed && m->trunk->held && m->delta->held && m->delta->deposit;
    for (int c = 0; there && c < p->chunks; c++) {
        int stage = m->layout.pipeline_index + c * m->layout.pipeline;
        p->chunk[c] = (struct chunk){.span = layout_span(&m->layout, c, m->config.num_layers),
                                     .first = stage == 0,
                                     .last = stage == stages - 1,
                                     .slots = part && part->slots ? part->slots[c] : 1};
        there = allocate_slots(m, &p->chunk[c]);
    }
    if (!there) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", m->config.num_layers);
    set_levels(m, part);
    return 0;
}

/* Addresses for the weights and gradients of a planned model. */
static int pretend_state(struct model *m) {
    struct arena *weights = &m->passes->weights;
    struct state *state = &m->passes->planned_state;
    weights->name = "weights";
    for (int round = 0; round < 2; round++) {
        state->weight = take(weights, m->table->total);
        state->gradient = m->training ? take(weights, m->table->total) : NULL;
        if (!round) TRY(arena_pretend(weights));
    }
    m->state = state;
    return 0;
}

static int fill(struct model *m, const struct model_part *part, long positions) {
    TRY(allocate(m, part));
    TRY(edges_create(&m->config, &m->edges));
    if (m->planned) TRY(pretend_state(m));
    TRY(prepare_connections(m));
    find_ends(m);
    for_layers(m, find_layer);
    for_layers(m, find_connections);
    lay_out(m, positions);
    int (*const reserve)(struct arena *) = m->planned ? arena_pretend : arena_reserve;
    TRY(reserve(&m->saved));
    TRY(reserve(&m->nodes));
    TRY(reserve(&m->scratch));
    TRY(reserve(&m->staging));
    if (m->passes->tokens.used) TRY(reserve(&m->passes->tokens));
    TRY(axis_reserve(m->tensor, m->sums));
    lay_out(m, positions);
    return m->planned ? 0 : fill_rotary(m, positions);
}

int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, const struct model_part *part, long batch, long length, long positions,
                bool training, struct model **out) {
    struct whole_model *whole = calloc(1, sizeof *whole);
    *out = NULL;
    if (!whole) return gdn_fail(GDN_INTERNAL, "out of memory for a model");
    struct model *m = &whole->model;
    *m = (struct model){.config = *config,
                        .table = table,
                        .state = state,
                        .ops = ops,
                        .layout = part ? *part->layout : layout_whole(),
                        .alone = axis_alone("tensor"),
                        .batch = batch,
                        .length = length,
                        .training = training,
                        .planned = !state,
                        .compress = part && training ? part->compress_sources : 0,
                        .saved = {.name = "activations", .device = ops->device},
                        .nodes = {.name = "sources", .device = ops->device},
                        .scratch = {.name = "scratch buffers", .device = ops->device},
                        .staging.name = "buffers between host and device",
                        .attention = &whole->attention,
                        .trunk = &whole->trunk,
                        .delta = &whole->delta,
                        .passes = &whole->passes};
    m->passes->tokens = (struct arena){.name = "tokens", .device = ops->device};
    long ranks = m->layout.tensor, index = m->layout.tensor_index;
    m->alone.ops = ops;
    m->tensor = part ? part->tensor : &m->alone;
    m->rows_divided = m->layout.sequence_parallel && ranks > 1;
    m->rows_most = m->rows_divided ? (batch * length + ranks - 1) / ranks : batch * length;
    m->attention->H = config->num_heads / ranks;
    m->attention->K = config->num_kv_heads / ranks;
    m->trunk->F = config->intermediate_size / ranks;
    m->trunk->first_token = config->vocab_size * index / ranks;
    m->trunk->V = config->vocab_size * (index + 1) / ranks - m->trunk->first_token;
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

void model_free(struct model *model) {
    if (!model) return;
    for (int c = 0; model->passes->chunk && c < model->passes->chunks; c++) {
        struct chunk *chunk = &model->passes->chunk[c];
        for (int s = 0; chunk->slot && s < chunk->slots; s++) {
            free(chunk->slot[s].layer);
            free(chunk->slot[s].connections);
            free(chunk->slot[s].rstd);
            free(chunk->slot[s].rstd_known);
            free(chunk->slot[s].packed);
            free(chunk->slot[s].rows);
        }
        free(chunk->slot);
    }
    arena_free(&model->saved);
    arena_free(&model->nodes);
    arena_free(&model->scratch);
    arena_free(&model->passes->weights);
    arena_free(&model->staging);
    arena_free(&model->passes->tokens);
    edges_free(&model->edges);
    free(model->passes->chunk);
    free(model->trunk->held);
    free(model->delta->held);
    free(model->delta->deposit);
    free(model->passes->unpacked);
    free(model->delta->projection);
    free(model->passes->walk.owed);
    free(model); /* and the rest of its struct whole */
}

void model_memory(const struct model *model, struct model_memory *out) {
    *out = (struct model_memory){.activations = (long)model->saved.size,
                                 .sources = (long)model->nodes.size,
                                 .workspace = (long)model->scratch.size};
}

int model_sites(const struct model_config *config) {
    return site_of(config->num_layers, (enum site)0);
}

void model_set_form(struct model *model, enum form form) {
    model->delta->form = form;
}
