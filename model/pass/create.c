/* Creates a model: finds its tensors in the parameter table and lays out every buffer of its passes, first to
 * count their bytes, then for real. A planned model gets addresses that nothing lies behind. */
#include "kernels/base/status.h"
#include "kernels/backends/backends.h"
#include "model/internal.h"
#include "model/params/params.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Logits are computed in blocks of rows, about this many elements at a time: a vocabulary never costs T·V. */
enum { LOGIT_ELEMENTS = 1 << 20 };

struct tensor find_tensor(const struct model *m, const char *format, ...) {
    char name[128];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    const struct row *row = params_find(m->table, name);
    if (!row) return (struct tensor){NULL, NULL};
    return (struct tensor){m->state->weight + row->offset,
                           m->state->gradient ? m->state->gradient + row->offset : NULL};
}

static void find_layer(struct model *m, int l) {
    struct layer *layer = &m->held[l];
    layer->norm1 = find_tensor(m, "layers.%d.input_layernorm.weight", l);
    layer->qkv = find_tensor(m, "layers.%d.self_attn.q_proj.weight", l);
    layer->o = find_tensor(m, "layers.%d.self_attn.o_proj.weight", l);
    layer->norm2 = find_tensor(m, "layers.%d.post_attention_layernorm.weight", l);
    layer->gate_up = find_tensor(m, "layers.%d.mlp.gate_proj.weight", l);
    layer->down = find_tensor(m, "layers.%d.mlp.down_proj.weight", l);
    find_connections(m, l);
}

static void find_tensors(struct model *m) {
    m->embed = find_tensor(m, "embed_tokens.weight");
    m->norm = find_tensor(m, "norm.weight");
    m->head = m->config.tie_embeddings ? m->embed : find_tensor(m, "lm_head.weight");
    for (int c = 0; c < m->chunks; c++)
        for (int l = m->chunk[c].span.first; l < m->chunk[c].span.end; l++) find_layer(m, l);
}

/* What a layer saves for its own backward pass. */
static void lay_out_layer(struct model *m, struct layer *layer, long T) {
    struct layer *shared = &m->shared;
    long D = m->config.hidden_size, hd = D / m->config.num_heads, rows = m->rows_most;
    SAVE(m, layer, shared, n1, rows * D, LEVEL_SELECTIVE);
    SAVE(m, layer, shared, qkv_out, T * (m->H + 2 * m->K) * hd, LEVEL_FULL);
    SAVE(m, layer, shared, attention, T * m->H * hd, LEVEL_FULL);
    SAVE(m, layer, shared, lse, T * m->H, LEVEL_FULL);
    SAVE(m, layer, shared, a, rows * D, LEVEL_NOTHING);
    SAVE(m, layer, shared, n2, rows * D, LEVEL_SELECTIVE);
    SAVE(m, layer, shared, rstd2, rows, LEVEL_NOTHING);
    SAVE(m, layer, shared, gu, T * 2 * m->F, LEVEL_FULL);
    lay_out_connections(m, &layer->connections, T);
}

/* What layers of this rank do not keep is laid out once: `shared` drops all that any of them drops, and has
 * the most connections. */
static void lay_out_shared(struct model *m, long T) {
    struct layer *shared = &m->shared;
    for (int c = 0; c < m->chunks; c++)
        for (int l = m->chunk[c].span.first; l < m->chunk[c].span.end; l++) {
            const struct layer *layer = &m->held[l];
            const struct connections *from = &layer->connections;
            struct connections *to = &shared->connections;
            if (layer->level > shared->level) shared->level = layer->level;
            if (from->level > to->level) to->level = from->level;
            if (from->level != LEVEL_NONE && from->n > to->n) to->n = from->n;
        }
    lay_out_layer(m, shared, T);
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
        *layer = m->held[l];
        lay_out_layer(m, layer, T);
        layer->rstd1 = take(&m->saved, rows);          /* a later layer's selection reads it */
        layer->z = lay_out_node(m, chunk, slot, l, T); /* a later layer's source */
        layer->y = !layer->connections.n ? NULL : m->training ? take(&m->saved, rows * D) : m->t2;
    }
    lay_out_rstd(m, chunk, slot);
}

static void lay_out_head(struct model *m, long T) {
    long part = (m->config.vocab_size + m->tensor->size - 1) / m->tensor->size; /* alike on all ranks */
    m->logit_rows = LOGIT_ELEMENTS / part;
    if (m->logit_rows < 1) m->logit_rows = 1;
    if (m->logit_rows > T) m->logit_rows = T;
    m->nf = m->rows_divided ? m->whole : take(&m->scratch, T * m->config.hidden_size);
    m->rstdf = take(&m->scratch, m->rows_most);
    m->losses = take(&m->scratch, T);
    m->logits = take(&m->scratch, m->logit_rows * m->V);
    if (m->tensor->size == 1) return;
    m->largest = take(&m->scratch, m->logit_rows);
    m->exp_sums = take(&m->scratch, 2 * m->logit_rows);
    m->sums = largest(m->sums, 2 * m->logit_rows);
}

static void lay_out_scratch(struct model *m, long T, long positions) {
    long D = m->config.hidden_size, hd = D / m->config.num_heads, ranks = m->tensor->size;
    struct arena *a = &m->scratch;
    bool first = m->chunk[0].first, last = m->chunk[m->chunks - 1].last;
    m->sums = (T + ranks - 1) / ranks * ranks * D;
    m->cosine = take(a, positions * hd / 2);
    m->sine = take(a, positions * hd / 2);
    m->input = arena_take(a, (size_t)T * sizeof *m->input);
    m->target = arena_take(a, (size_t)T * sizeof *m->target);
    if (!m->ops->device->host)
        m->rows_of_pass = arena_take(&m->tokens, (size_t)(T + m->batch) * sizeof *m->rows_of_pass);
    m->sums_of_pass = arena_take(a, sizeof *m->sums_of_pass);
    m->t1 = take(a, T * D);
    if (m->rows_divided) m->whole = take(a, T * D);
    if (!m->training) m->t2 = take(a, m->rows_most * D);
    m->h = take(a, T * m->F);
    if (last) lay_out_head(m, T);
    if (!m->training) return;
    if (first && last && m->chunks == 1) m->whole_g = take(a, T * D);
    m->dgu = take(a, T * 2 * m->F);
    m->dh = take(a, T * m->F);
    m->dqkv = take(a, T * (m->H + 2 * m->K) * hd);
    m->work = take(a, T * m->H);
    lay_out_deposits(m, T);
}

static void lay_out(struct model *m, long positions) {
    long T = m->batch * m->length, most = 0;
    lay_out_scratch(m, T, positions);
    for (int l = 0; l < m->config.num_layers; l++) most = largest(most, m->held[l].connections.n);
    if (most) lay_out_delta_scratch(m, T, most);
    lay_out_shared(m, T);
    lay_out_unpacked(m, T);
    for (int c = 0; c < m->chunks; c++)
        for (int s = 0; s < m->chunk[c].slots; s++) lay_out_slot(m, &m->chunk[c], &m->chunk[c].slot[s], T);
}

/* cos and sin of position · theta^(−2i/hd) (Su et al. 2021). */
static int fill_rotary(struct model *m, long positions) {
    long hd = m->config.hidden_size / m->config.num_heads, half = hd / 2;
    size_t bytes = (size_t)(positions * half) * sizeof(real);
    real *cosine = malloc(2 * bytes + 1), *sine = cosine + positions * half;
    if (!cosine) return gdn_fail(GDN_INTERNAL, "out of memory for the angles of %ld positions", positions);
    for (long s = 0; s < positions; s++)
        for (long i = 0; i < half; i++) {
            double angle = (double)s * pow(m->config.rope_theta, -2.0 * (double)i / (double)hd);
            cosine[s * half + i] = (real)cos(angle);
            sine[s * half + i] = (real)sin(angle);
        }
    m->ops->device->upload(m->cosine, cosine, bytes);
    m->ops->device->upload(m->sine, sine, bytes);
    free(cosine);
    return 0;
}

static int allocate_slots(struct model *m, struct chunk *chunk) {
    size_t nodes = (size_t)m->config.num_layers + 1;
    chunk->slot = calloc((size_t)chunk->slots, sizeof *chunk->slot);
    for (int s = 0; chunk->slot && s < chunk->slots; s++) {
        struct slot *slot = &chunk->slot[s];
        slot->layer = calloc(nodes, sizeof *slot->layer);
        slot->rstd = calloc(nodes, sizeof *slot->rstd);
        slot->rstd_known = calloc(nodes, sizeof *slot->rstd_known);
        slot->packed = calloc(nodes, sizeof *slot->packed);
        slot->rows = calloc(nodes, sizeof *slot->rows);
        if (!slot->layer || !slot->rstd || !slot->rstd_known || !slot->packed || !slot->rows) return -1;
    }
    return chunk->slot ? 0 : -1;
}

/* The chunks of this rank, and what its passes keep account of. */
static int allocate(struct model *m, const struct model_part *part) {
    size_t nodes = (size_t)m->config.num_layers + 1;
    int stages = m->layout.stage ? m->layout.pipeline * m->layout.chunks : 1;
    m->chunks = m->layout.chunks;
    m->chunk = calloc((size_t)m->chunks, sizeof *m->chunk);
    m->held = calloc(nodes, sizeof *m->held);
    m->deposit = calloc(nodes, sizeof *m->deposit);
    m->unpacked = calloc(nodes, sizeof *m->unpacked);
    m->walk.owed = calloc(nodes, sizeof *m->walk.owed);
    int status = m->chunk && m->held && m->deposit && m->unpacked && m->walk.owed ? 0 : -1;
    for (int c = 0; !status && c < m->chunks; c++) {
        int stage = m->layout.pipeline_index + c * m->layout.pipeline;
        m->chunk[c] = (struct chunk){.span = layout_span(&m->layout, c, m->config.num_layers),
                                     .first = stage == 0,
                                     .last = stage == stages - 1,
                                     .slots = part && part->slots ? part->slots[c] : 1};
        status = allocate_slots(m, &m->chunk[c]);
    }
    if (status) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", m->config.num_layers);
    for (int l = 0; l < m->config.num_layers; l++) {
        struct recompute level = {LEVEL_NONE, LEVEL_NONE};
        if (part && part->recompute) level = part->recompute[l];
        m->held[l].level = m->training ? level.layer : LEVEL_NOTHING;
        m->held[l].connections.level = m->training ? level.delta : LEVEL_NOTHING;
    }
    return 0;
}

/* Addresses for the weights and gradients of a planned model. */
static int pretend_state(struct model *m) {
    m->weights.name = "weights";
    for (int round = 0; round < 2; round++) {
        m->planned_state.weight = take(&m->weights, m->table->total);
        m->planned_state.gradient = m->training ? take(&m->weights, m->table->total) : NULL;
        if (!round) TRY(arena_pretend(&m->weights));
    }
    m->state = &m->planned_state;
    return 0;
}

static int fill(struct model *m, const struct model_part *part, long positions) {
    TRY(allocate(m, part));
    TRY(edges_create(&m->config, &m->edges));
    if (m->planned) TRY(pretend_state(m));
    TRY(prepare_connections(m));
    find_tensors(m);
    lay_out(m, positions);
    int (*const reserve)(struct arena *) = m->planned ? arena_pretend : arena_reserve;
    TRY(reserve(&m->saved));
    TRY(reserve(&m->nodes));
    TRY(reserve(&m->scratch));
    TRY(reserve(&m->staging));
    if (m->tokens.used) TRY(reserve(&m->tokens));
    TRY(axis_reserve(m->tensor, m->sums));
    lay_out(m, positions);
    return m->planned ? 0 : fill_rotary(m, positions);
}

int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, const struct model_part *part, long batch, long length, long positions,
                bool training, struct model **out) {
    struct model *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return gdn_fail(GDN_INTERNAL, "out of memory for a model");
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
                        .tokens = {.name = "tokens", .device = ops->device},
                        .staging.name = "buffers between host and device"};
    long ranks = m->layout.tensor, index = m->layout.tensor_index;
    m->alone.ops = ops;
    m->tensor = part ? part->tensor : &m->alone;
    m->rows_divided = m->layout.sequence_parallel && ranks > 1;
    m->rows_most = m->rows_divided ? (batch * length + ranks - 1) / ranks : batch * length;
    m->H = config->num_heads / ranks;
    m->K = config->num_kv_heads / ranks;
    m->F = config->intermediate_size / ranks;
    m->first_token = config->vocab_size * index / ranks;
    m->V = config->vocab_size * (index + 1) / ranks - m->first_token;
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
    for (int c = 0; model->chunk && c < model->chunks; c++) {
        struct chunk *chunk = &model->chunk[c];
        for (int s = 0; chunk->slot && s < chunk->slots; s++) {
            free(chunk->slot[s].layer);
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
    arena_free(&model->weights);
    arena_free(&model->staging);
    arena_free(&model->tokens);
    edges_free(&model->edges);
    free(model->chunk);
    free(model->held);
    free(model->deposit);
    free(model->unpacked);
    free(model->projection);
    free(model->walk.owed);
    free(model);
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
    model->form = form;
}
