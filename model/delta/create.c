/* Finds the tensors of a layer's delta connections and lays out their buffers. */
#include "kernels/base/status.h"
#include "model/delta/private.h"

#include <stdlib.h>
#include <string.h>

static struct delta_part divide(const struct model *m) {
    const struct model_config *c = &m->config;
    const struct layout *l = &m->layout;
    bool by_connection = layout_by_connection(l);
    long cut = by_connection ? 1 : l->size[AXIS_TENSOR]; /* of a connection's channels */
    return (struct delta_part){.first = by_connection ? l->index[AXIS_TENSOR] : 0,
                               .step = by_connection ? l->size[AXIS_TENSOR] : 1,
                               .channels = cut > 1,
                               .leads = l->index[AXIS_TENSOR] == 0,
                               .W = c->hidden_size / cut,
                               .D = c->hidden_size / l->size[AXIS_TENSOR],
                               .column = (long)c->hidden_size / l->size[AXIS_TENSOR] * l->index[AXIS_TENSOR]};
}

/* Which connections this rank has tensors of, held [edges]. */
static void find_held(const struct table *table, bool *held) {
    for (int i = 0; i < table->rows; i++)
        if (table->row[i].distance) held[table->row[i].edge] = true;
}

static void find_projection(const struct model *m, const struct edge *edge, struct projection *out) {
    const struct map_part *map = m->delta->map;
    int l = edge->target, b = 0;
    for (; b < aggregate_block(m, 0); b++)
        out->map[b] = find_tensor(m, "layers.%d.delta.%d.%s", l, edge->distance, map[b].name);
    for (; b < rms_block(m); b++) out->map[b] = find_tensor(m, "layers.%d.delta.%s", l, map[b].name);
}

/* The weights of sources that travel narrow, wherever this rank has them. */
static int find_projections(struct model *m) {
    size_t edges = (size_t)m->edges.count;
    if (!m->layout.narrow) return 0;
    m->delta->projection = calloc(edges + 1, sizeof *m->delta->projection);
    bool *held = calloc(edges + 1, sizeof *held);
    if (!m->delta->projection || !held) {
        free(held);
        return gdn_fail(GDN_INTERNAL, "out of memory for %d connections", m->edges.count);
    }
    find_held(m->table, held);
    for (int e = 0; e < m->edges.count; e++)
        if (held[e] && !m->edges.edge[e].whole)
            find_projection(m, &m->edges.edge[e], &m->delta->projection[e]);
    free(held);
    return 0;
}

/* The gate's maps, as this rank computes them. */
static void divide_maps(struct model *m) {
    const struct gate *gate = m->delta->gate;
    struct leaf leaf[MAX_GATE_LEAVES];
    gate->leaves(&m->config, leaf);
    for (int i = 0; i < gate->maps; i++) {
        const struct leaf *w = &leaf[gate->map[i].leaf];
        bool whole = w->split == SPLIT_NONE;
        m->delta->map[i] = (struct map_part){.name = w->name,
                                             .leaf = gate->map[i].leaf,
                                             .of = gate->map[i].of,
                                             .width = whole ? w->out : own_part(m, w->out),
                                             .shared = whole && shares_maps(m)};
    }
}

/* The aggregate's. */
static void divide_source_maps(struct model *m) {
    const struct aggregate *aggregate = m->delta->aggregate;
    struct leaf leaf[MAX_AGGREGATE_LEAVES];
    aggregate_leaves(&m->config, leaf);
    for (int i = 0; i < aggregate->maps; i++) {
        const struct leaf *w = &leaf[aggregate->map[i]];
        m->delta->map[aggregate_block(m, i)] = (struct map_part){
            .name = w->name, .leaf = aggregate->map[i], .width = w->out, .shared = m->rows_divided};
    }
}

int prepare_connections(struct model *m, struct model_rule *rule) {
    struct delta_state *s = m->delta = rule->common;
    s->gate = gate_of(&m->config);
    s->aggregate = aggregate_of(&m->config);
    s->shared = rule->shared.own;
    s->gate_scratch = calloc(1, s->gate->scratch_bytes + 1);
    s->aggregate_scratch = calloc(1, s->aggregate->scratch_bytes + 1);
    if (!s->gate_scratch || !s->aggregate_scratch)
        return gdn_fail(GDN_INTERNAL, "out of memory for what connections share");
    s->part = divide(m);
    divide_maps(m);
    divide_source_maps(m);
    return find_projections(m);
}

void release_connections(void *common) {
    struct delta_state *s = common;
    free(s->gate_scratch);
    free(s->aggregate_scratch);
    free(s->projection);
}

/* Of what a gate saves, so that a struct of any kind may follow it. */
static size_t gate_room(const struct gate *gate) {
    const size_t step = sizeof(void *);
    return (gate->saved_bytes + step - 1) / step * step;
}

size_t connection_bytes(const struct model_config *config) {
    return gate_room(gate_of(config)) + aggregate_of(config)->saved_bytes;
}

void find_connections(struct model *m, const struct rule_layer *x) {
    struct connections *c = x->own;
    int l = x->layer;
    struct leaf of_layer[MAX_AGGREGATE_LEAVES];
    int shared = aggregate_leaves(&m->config, of_layer);
    for (int i = 0; i < shared; i++)
        c->layer_leaf[i] = find_tensor(m, "layers.%d.delta.%s", l, of_layer[i].name);
    if (!own_connections(&m->delta->part, x->n)) return;
    const struct gate *gate = m->delta->gate;
    struct leaf leaf[MAX_GATE_LEAVES];
    int leaves = gate->leaves(&m->config, leaf),
        d = x->edge[m->delta->part.first].distance; /* the first of each stack */
    for (int i = 0; i < leaves; i++) c->leaf[i] = find_tensor(m, "layers.%d.delta.%d.%s", l, d, leaf[i].name);
    c->scale = find_tensor(m, "layers.%d.delta.%d.scale", l, d);
    c->mix = find_tensor(m, "layers.%d.delta.%d.mix", l, d);
}

static void lay_out_aggregate(struct model *m, struct connections *c, long T) {
    const struct aggregate *aggregate = m->delta->aggregate;
    struct connections *shared = m->delta->shared;
    if (aggregate->weigh) SAVE(m, c, shared, alpha, T * c->n, POLICY_NO_BACKWARD);
    if (aggregate->combine)
        SAVE_BF16(m, c, shared, contribution, T * c->n * m->config.hidden_size, POLICY_FULL);
    if (aggregate->lay_out) aggregate->lay_out(m, c, T);
}

void lay_out_connections(struct model *m, const struct rule_layer *x, void *of_all, long T) {
    struct connections *c = x->own, *shared = of_all;
    const struct delta_config *d = &m->config.delta;
    const struct delta_part *part = &m->delta->part;
    long n = own_connections(part, x->n);
    c->edge = x->edge, c->n = x->n, c->policy = x->policy;
    c->gate = c + 1;
    c->aggregate = (char *)c->gate + gate_room(m->delta->gate);
    SAVE(m, c, shared, weight, T * n, POLICY_NO_BACKWARD);
    SAVE(m, c, shared, rms, T * n, POLICY_NO_BACKWARD);
    if (d->normalize) {
        SAVE(m, c, shared, inv, T * n, POLICY_NO_BACKWARD);
        SAVE(m, c, shared, r, T * n, POLICY_NO_BACKWARD);
    }
    m->delta->gate->lay_out(m, c, T);
    lay_out_aggregate(m, c, T);
}

/* Columns of one rank, compact, for up to `all` connections. */
static void lay_out_columns(struct model *m, long T, long all) {
    struct delta_state *s = m->delta;
    long D = s->part.D;
    if (m->tensor->size == 1) return;
    s->columns_t = take(&m->scratch, T * D);
    s->columns_s = take(&m->scratch, T * D);
    s->columns_out = take(&m->scratch, T * D);
    if (m->training) s->columns_d = take(&m->scratch, T * D);
    if (!s->aggregate->combine) return;
    s->columns_c = take(&m->scratch, T * all * D);
    m->sums = largest(m->sums, T * all * m->config.hidden_size);
}

/* Gradients, for layers of up to `all` connections of which this rank has n. */
static void lay_out_gradients(struct model *m, long T, long all, long n) {
    struct delta_state *s = m->delta;
    long D = m->config.hidden_size, G = m->config.delta.gate_hidden;
    s->dt = take(&m->scratch, T * D);
    s->dx = take(&m->scratch, T * n * G);
    s->dgate = take(&m->scratch, T * largest(s->part.W, G));
    s->dweight = take(&m->scratch, T * n);
    s->dalpha = s->part.step > 1 ? take(&m->scratch, T * all) : s->dweight;
    s->dr = take(&m->scratch, T * n);
    s->k = take(&m->scratch, T);
    s->ct = take(&m->scratch, T);
    s->cs = take(&m->scratch, T * all);
    if (s->aggregate->combine) s->dc = take(&m->scratch, T * all * D);
}

void lay_out_delta_scratch(struct model *m, const struct model_rule *rule, long T, int max) {
    struct delta_state *s = rule->common;
    const struct gate *gate = m->delta->gate;
    const struct delta_part *part = &s->part;
    long D = m->config.hidden_size, Hd = own_part(m, m->config.delta.hidden), G = m->config.delta.gate_hidden;
    long n = own_connections(part, max);
    s->difference = take(&m->scratch, T * D);
    s->mean = take(&m->scratch, T * D);
    s->gram = take(&m->scratch, Hd * Hd);
    s->kv = take(&m->scratch, T * n * Hd);
    s->dv = take(&m->scratch, T * n * largest(Hd, G));
    lay_out_columns(m, T, max);
    /* The root mean squares of `full`, gradients of shares. */
    m->sums = largest(m->sums, T * max);
    if (shares_maps(m)) m->sums = largest(m->sums, T * max * G);
    if (gate->lay_out_scratch) gate->lay_out_scratch(m, T, n);
    if (s->aggregate->lay_out_scratch) s->aggregate->lay_out_scratch(m, T, max);
    if (!m->training) return;
    if (!m->ops->device->host) {
        long widest = largest(largest(Hd, part->W), largest(G, gate->gates(&m->config)));
        s->seen = take(&m->staging, T * D);
        s->seen_gates = take(&m->staging, T * n * widest);
    }
    lay_out_gradients(m, T, max, n);
}
