#include "tests/model/params/param_rules.h"

#include <stdlib.h>
#include <string.h>

/* The number after `word` at the beginning of *at, and *at behind it and its dot; −1 where there is none. */
static int number_after(const char **at, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*at, word, length) || (*at)[length] < '0' || (*at)[length] > '9') return -1;
    char *end;
    int number = (int)strtol(*at + length, &end, 10);
    *at = end + 1;
    return number;
}

struct named parse(const char *name) {
    struct named n = {.leaf = name};
    n.layer = number_after(&n.leaf, "layers.");
    n.distance = number_after(&n.leaf, "delta.");
    return n;
}

static bool one_of(const char *leaf, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(leaf, *list)) return true;
    return false;
}

/* 0 rows, 1 columns, −1 replicated, by leaf name, in a channel layout. */
static int side_of(const struct model_config *m, struct named n) {
    static const char *const rows[] = {"embed_tokens.weight",     "lm_head.weight",
                                       "self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                       "self_attn.v_proj.weight", "self_attn.q_proj.bias",
                                       "self_attn.k_proj.bias",   "self_attn.v_proj.bias",
                                       "mlp.gate_proj.weight",
                                       "mlp.up_proj.weight",      "delta.query.weight",
                                       "delta.key.weight",        NULL};
    static const char *const columns[] = {"self_attn.o_proj.weight", "mlp.down_proj.weight", NULL};
    static const char *const connection_rows[] = {"delta_proj.weight", "gate_out.weight", "gate_out.bias",
                                                  "gate.weight", NULL};
    if (n.distance < 0) return one_of(n.leaf, rows) ? 0 : one_of(n.leaf, columns) ? 1 : -1;
    if (m->delta.kind == KIND_ADAPTIVE) return -1;
    return one_of(n.leaf, connection_rows) ? 0 : strcmp(n.leaf, "output_proj.weight") == 0 ? 1 : -1;
}

static bool by_connection(const struct layout *l) {
    return l->delta == DELTA_CONNECTION && l->size[AXIS_TENSOR] > 1;
}

static uint64_t rank_of_layer(const struct bench *b, int layer) {
    return UINT64_C(1) << layout_stage_of(&b->layout, layer) % b->layout.size[AXIS_PIPELINE];
}

static uint64_t projectors(const struct bench *b, struct named n, bool all) {
    uint64_t bits = 0;
    for (int e = 0; e < b->edges.count; e++) {
        const struct edge *edge = &b->edges.edge[e];
        if (edge->target != n.layer || (!all && edge->distance != n.distance)) continue;
        if (b->routes.projector[e] >= 0)
            bits |= UINT64_C(1) << b->routes.projector[e] % b->layout.size[AXIS_PIPELINE];
    }
    return bits;
}

uint64_t owners(const struct bench *b, struct named n) {
    uint64_t first = rank_of_layer(b, -1), last = rank_of_layer(b, b->model->num_layers);
    if (!strcmp(n.leaf, "embed_tokens.weight")) return b->model->tie_embeddings ? first | last : first;
    if (n.layer < 0) return last;
    uint64_t own = rank_of_layer(b, n.layer);
    if (!strcmp(n.leaf, "delta_proj.weight")) return own | projectors(b, n, false);
    if (!strcmp(n.leaf, "gate_in.weight")) return own | projectors(b, n, false);
    if (!strcmp(n.leaf, "delta.select.weight")) return own | projectors(b, n, true);
    return own;
}

static int connection_of(const struct model_config *m, int distance) {
    int connection = 0;
    while (m->delta.distances[connection] != distance) connection++;
    return connection;
}

struct box expected(const struct bench *b, const struct row *global, int t, int p) {
    struct named n = parse(global->name);
    const struct layout *l = &b->layout;
    struct box all = {{0, 0}, {global->shape[0], global->shape[1]}}, nothing = {{0, 0}, {0, 0}};
    if (!(owners(b, n) >> p & 1)) return nothing;
    if (by_connection(l) && n.distance >= 0)
        return connection_of(b->model, n.distance) % l->size[AXIS_TENSOR] == t ? all : nothing;
    int side = side_of(b->model, n);
    if (side < 0) return all;
    all.first[side] = global->shape[side] * t / l->size[AXIS_TENSOR];
    all.end[side] = global->shape[side] * (t + 1) / l->size[AXIS_TENSOR];
    return all;
}

bool expected_partial(const struct bench *b, const struct row *row) {
    struct named n = parse(row->name);
    if (b->layout.size[AXIS_TENSOR] == 1 || side_of(b->model, n) >= 0) return false;
    if (n.distance >= 0) return !by_connection(&b->layout);
    if (!strcmp(n.leaf, "delta.select.weight")) return true;
    if (!strcmp(n.leaf, "self_attn.q_norm.weight") || !strcmp(n.leaf, "self_attn.k_norm.weight")) return true;
    return b->layout.sequence_parallel; /* the trunk's norms, and o_proj's bias */
}
