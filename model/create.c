/* Creates a model: finds its tensors in the parameter table and lays out every buffer of its passes, first to
 * count their bytes, then for real. */
#include "kernels/base/status.h"
#include "model/internal.h"
#include "model/params.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Logits are computed in blocks of rows, about this many elements at a time: a vocabulary never costs T·V. */
enum { LOGIT_ELEMENTS = 1 << 20 };

static struct tensor find(const struct model *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The tensor of a name; NULL pointers where this model has none. */
static struct tensor find(const struct model *m, const char *format, ...) {
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

static void find_connections(struct model *m, int l) {
    struct connections *c = &m->layer[l].connections;
    c->edge = &m->edges.edge[m->edges.first[l]];
    c->n = m->edges.first[l + 1] - m->edges.first[l];
    if (!c->n) return;
    static const char *const maps[] = {[KIND_BOTTLENECK] = "delta_proj.weight",
                                       [KIND_FULL] = "gate.weight",
                                       [KIND_ADAPTIVE] = "context_proj.weight"};
    int d = c->edge[0].distance; /* the first of each stack */
    c->proj = find(m, "layers.%d.delta.%d.%s", l, d, maps[m->config.delta.kind]);
    c->gate_in = find(m, "layers.%d.delta.%d.gate_in.weight", l, d);
    c->gate_in_bias = find(m, "layers.%d.delta.%d.gate_in.bias", l, d);
    c->gate_out = find(m, "layers.%d.delta.%d.gate_out.weight", l, d);
    c->gate_out_bias = find(m, "layers.%d.delta.%d.gate_out.bias", l, d);
    c->out = find(m, "layers.%d.delta.%d.output_proj.weight", l, d);
    c->scale = find(m, "layers.%d.delta.%d.scale", l, d);
    c->mix = find(m, "layers.%d.delta.%d.mix", l, d);
    c->select = find(m, "layers.%d.delta.select.weight", l);
    c->query = find(m, "layers.%d.delta.query.weight", l);
    c->key = find(m, "layers.%d.delta.key.weight", l);
}

static void find_tensors(struct model *m) {
    m->embed = find(m, "embed_tokens.weight");
    m->norm = find(m, "norm.weight");
    m->head = m->config.tie_embeddings ? m->embed : find(m, "lm_head.weight");
    for (int l = 0; l < m->config.num_layers; l++) {
        struct layer *layer = &m->layer[l];
        layer->norm1 = find(m, "layers.%d.input_layernorm.weight", l);
        layer->qkv = find(m, "layers.%d.self_attn.q_proj.weight", l);
        layer->o = find(m, "layers.%d.self_attn.o_proj.weight", l);
        layer->norm2 = find(m, "layers.%d.post_attention_layernorm.weight", l);
        layer->gate_up = find(m, "layers.%d.mlp.gate_proj.weight", l);
        layer->down = find(m, "layers.%d.mlp.down_proj.weight", l);
        find_connections(m, l);
    }
}

static real *take(struct model *m, long count) {
    return arena_take(&m->arena, (size_t)count * sizeof(real));
}

/* A saved buffer of layer l: its own where a backward pass will read it, else one that all layers share. */
#define SAVE(m, l, member, count)                                                                            \
    ((m)->layer[l].member = (m)->training || (l) == 0 ? take(m, count) : (m)->layer[0].member)

static void lay_out_connections(struct model *m, int l, long T, long most) {
    const struct delta_config *d = &m->config.delta;
    /* Where layers share buffers, all are as large as the layer with most connections needs. */
    long n = m->training ? m->layer[l].connections.n : most;
    long D = m->config.hidden_size, Hd = d->hidden, G = d->gate_hidden;
    if (!n) return;
    SAVE(m, l, connections.weight, T * n);
    SAVE(m, l, connections.rms, T * n);
    if (d->normalize) {
        SAVE(m, l, connections.inv, T * n);
        SAVE(m, l, connections.r, T * n);
    }
    long map = d->kind == KIND_BOTTLENECK ? Hd : d->kind == KIND_FULL ? D : G;
    SAVE(m, l, connections.p, T * n * map);
    SAVE(m, l, connections.gate, T * n * map);
    if (d->kind != KIND_FULL) {
        SAVE(m, l, connections.x, T * n * G);
        SAVE(m, l, connections.h, T * n * G);
    }
    if (d->kind == KIND_BOTTLENECK) {
        SAVE(m, l, connections.v, T * n * Hd);
        SAVE(m, l, connections.extra, T * n * Hd);
    }
    if (d->kind == KIND_ADAPTIVE) {
        SAVE(m, l, connections.magnitude, T * n);
        SAVE(m, l, connections.square, T * n);
    }
    if (d->aggregate == AGGREGATE_ATTENTION) {
        SAVE(m, l, connections.select_query, T * d->attention_dim);
        SAVE(m, l, connections.select_key, T * n * d->attention_dim);
        SAVE(m, l, connections.alpha, T * n);
        SAVE(m, l, connections.rt, T);
    }
    if (d->aggregate == AGGREGATE_MULTIHEAD) {
        SAVE(m, l, connections.select_query, T * D);
        SAVE(m, l, connections.select_key, T * n * D);
        SAVE(m, l, connections.alpha, T * n * d->attention_heads);
        SAVE(m, l, connections.c, T * n * D);
    }
}

static void lay_out_layer(struct model *m, int l, long T) {
    const struct model_config *c = &m->config;
    long D = c->hidden_size, F = c->intermediate_size, hd = D / c->num_heads;
    SAVE(m, l, n1, T * D);
    m->layer[l].rstd1 = take(m, T); /* a later layer's selection reads it */
    SAVE(m, l, qkv_out, T * (c->num_heads + 2 * c->num_kv_heads) * hd);
    SAVE(m, l, attention, T * D);
    SAVE(m, l, lse, T * c->num_heads);
    SAVE(m, l, a, T * D);
    SAVE(m, l, n2, T * D);
    SAVE(m, l, rstd2, T);
    SAVE(m, l, gu, T * 2 * F);
    m->layer[l].z = take(m, T * D); /* a later layer's source */
    if (m->layer[l].connections.n)
        m->layer[l].y = m->training ? take(m, T * D) : m->t2;
    else
        m->layer[l].y = m->layer[l].z;
}

static long largest(long a, long b) {
    return a > b ? a : b;
}

static void lay_out_delta_scratch(struct model *m, long T, long n) {
    const struct delta_config *d = &m->config.delta;
    long D = m->config.hidden_size, Hd = d->hidden, G = d->gate_hidden;
    m->delta = take(m, T * D);
    m->mean = take(m, T * D);
    m->gram = take(m, Hd * Hd);
    m->kv = take(m, T * n * Hd);
    m->dv = take(m, T * n * largest(Hd, G));
    if (!m->training) return;
    m->dt = take(m, T * D);
    m->dx = take(m, T * n * G);
    m->dgate = take(m, T * D);
    m->dweight = take(m, T * n);
    m->dr = take(m, T * n);
    m->k = take(m, T);
    m->ct = take(m, T);
    m->cs = take(m, T * n);
    if (d->aggregate == AGGREGATE_MULTIHEAD) m->dc = take(m, T * n * D);
    for (int e = 0; e < m->edges.count; e++) {
        real **deposit = &m->deposit[m->edges.edge[e].source + 1];
        if (!*deposit) *deposit = take(m, T * D);
    }
}

static void lay_out(struct model *m, long positions) {
    const struct model_config *c = &m->config;
    long T = m->batch * m->length, D = c->hidden_size, F = c->intermediate_size, hd = D / c->num_heads,
         most = 0;
    m->x0 = take(m, T * D);
    m->nf = take(m, T * D);
    m->rstdf = take(m, T);
    m->cosine = take(m, positions * hd / 2);
    m->sine = take(m, positions * hd / 2);
    m->input = arena_take(&m->arena, (size_t)T * sizeof *m->input);
    m->target = arena_take(&m->arena, (size_t)T * sizeof *m->target);
    m->t1 = take(m, T * D);
    if (!m->training) m->t2 = take(m, T * D);
    m->h = take(m, T * F);
    m->losses = take(m, T);
    m->logit_rows = LOGIT_ELEMENTS / c->vocab_size;
    if (m->logit_rows < 1) m->logit_rows = 1;
    if (m->logit_rows > T) m->logit_rows = T;
    m->logits = take(m, m->logit_rows * c->vocab_size);
    for (int l = 0; l < c->num_layers; l++) most = largest(most, m->layer[l].connections.n);
    for (int l = 0; l < c->num_layers; l++) {
        lay_out_layer(m, l, T);
        if (most) lay_out_connections(m, l, T, most);
    }
    if (m->training) {
        m->g = take(m, T * D);
        m->dgu = take(m, T * 2 * F);
        m->dh = take(m, T * F);
        m->dqkv = take(m, T * (c->num_heads + 2 * c->num_kv_heads) * hd);
        m->work = take(m, T * c->num_heads);
        for (int i = 0; i <= c->num_layers; i++) m->deposit[i] = NULL;
    }
    if (most) lay_out_delta_scratch(m, T, most);
}

/* cos and sin of position · theta^(−2i/hd) (Su et al. 2021). */
static void fill_rotary(struct model *m, long positions) {
    long hd = m->config.hidden_size / m->config.num_heads;
    for (long s = 0; s < positions; s++)
        for (long i = 0; i < hd / 2; i++) {
            double angle = (double)s * pow(m->config.rope_theta, -2.0 * (double)i / (double)hd);
            m->cosine[s * (hd / 2) + i] = (real)cos(angle);
            m->sine[s * (hd / 2) + i] = (real)sin(angle);
        }
}

int model_build(const struct model_config *config, const struct table *table, const struct state *state,
                const struct ops *ops, long batch, long length, long positions, bool training,
                struct model **out) {
    struct model *m = calloc(1, sizeof *m);
    *out = m;
    if (!m) return gdn_fail(GDN_INTERNAL, "out of memory for a model");
    *m = (struct model){.config = *config,
                        .table = table,
                        .state = state,
                        .ops = ops,
                        .batch = batch,
                        .length = length,
                        .training = training,
                        .arena.name = "activations"};
    m->layer = calloc((size_t)config->num_layers, sizeof *m->layer);
    m->deposit = training ? calloc((size_t)config->num_layers + 1, sizeof *m->deposit) : NULL;
    int status = !m->layer || (training && !m->deposit)
                     ? gdn_fail(GDN_INTERNAL, "out of memory for %d layers", config->num_layers)
                     : edges_create(config, &m->edges);
    if (!status) {
        find_tensors(m);
        lay_out(m, positions);
        status = arena_reserve(&m->arena);
    }
    if (status) {
        model_free(m);
        *out = NULL;
        return status;
    }
    lay_out(m, positions);
    fill_rotary(m, positions);
    return 0;
}

int model_create(const struct model_config *config, const struct table *table, const struct state *state,
                 const struct ops *ops, long batch, long length, bool training, struct model **out) {
    return model_build(config, table, state, ops, batch, length, length, training, out);
}

void model_free(struct model *model) {
    if (!model) return;
    arena_free(&model->arena);
    edges_free(&model->edges);
    free(model->layer);
    free(model->deposit);
    free(model);
}

void model_memory(const struct model *model, struct model_memory *out) {
    out->activations = (long)model->arena.size;
}

void model_set_form(struct model *model, enum form form) {
    model->form = form;
}
