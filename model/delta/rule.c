/* The gated delta connections as a rule between layers: what they are in a configuration (model.md, 2 to 4).
 */
#include "model/delta/private.h"

#include <math.h>

static double distance_scale(int distance, const struct delta_config *delta) {
    switch (delta->distance_scale) {
    case SCALE_RECIPROCAL:
        return 1.0 / (1.0 + delta->decay * distance);
    case SCALE_EXPONENTIAL:
        return exp(-delta->decay * distance);
    default:
        return 1.0;
    }
}

/* The farthest distance that reaches a node below this layer. */
static int reach(int layer, const struct delta_config *delta) {
    return layer + (delta->embedding_source ? 1 : 0);
}

static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    const struct delta_config *delta = &config->delta;
    int n = 0;
    (void)settings;
    for (; n < delta->num_distances && delta->distances[n] <= reach(layer, delta); n++) {
        int d = delta->distances[n];
        edge[n] = (struct edge){.source = layer - d, .introduced = n + 1, .scale = distance_scale(d, delta)};
    }
    return n;
}

static int connection_leaves(const struct model_config *m, const struct rule_config *settings,
                             struct leaf *leaf) {
    (void)settings;
    const struct gate *gate = gate_of(m);
    int n = gate->leaves(m, leaf);
    if (m->delta.normalize) leaf[n++] = leaf_vector("scale", SPLIT_NONE, 1, sqrt((double)m->hidden_size));
    if (gate_has_mix(m)) leaf[n++] = leaf_vector("mix", SPLIT_NONE, 1, gate->mixed ? 0 : 1);
    return n;
}

/* Those of selection. */
static int layer_leaves(const struct model_config *m, const struct rule_config *settings, struct leaf *leaf) {
    (void)settings;
    long D = m->hidden_size;
    int n = 0;
    switch (m->delta.aggregate) {
    case AGGREGATE_MULTIHEAD:
        leaf[n++] = leaf_matrix("query.weight", SPLIT_ROWS, D, D, LEAF_WIDTH);
        leaf[n] = leaf_matrix("key.weight", SPLIT_ROWS, D, D, LEAF_WIDTH), leaf[n++].joined = true;
        break;
    case AGGREGATE_ATTENTION:
        leaf[n] = leaf_matrix("select.weight", SPLIT_NONE, m->delta.attention_dim, D, LEAF_WIDTH);
        leaf[n++].projects = true;
        break;
    default:
        break;
    }
    return n;
}

/* Of one connection: its matrix products in the direct form. */
static double connection_flops(const struct model_config *m) {
    const struct delta_config *d = &m->delta;
    double D = m->hidden_size, flops = gate_of(m)->flops(m);
    if (d->aggregate == AGGREGATE_ATTENTION) flops += 2 * D * d->attention_dim;
    if (d->aggregate == AGGREGATE_MULTIHEAD) flops += 2 * D * D;
    return flops;
}

static double flops(const struct model_config *m, const struct rule_config *settings, int n) {
    (void)settings;
    double D = m->hidden_size, flops = n * connection_flops(m);
    if (n && m->delta.aggregate == AGGREGATE_ATTENTION) flops += 2 * D * m->delta.attention_dim;
    if (n && m->delta.aggregate == AGGREGATE_MULTIHEAD) flops += 2 * D * D;
    return flops;
}

static const struct conflict *conflict(const struct model_config *m, const struct rule_config *settings,
                                       int tensor, int sharing) {
    static const struct conflict
        dim = {"aggregate attention needs an attention_dim of at least 1",
               {"model.delta.aggregate", "model.delta.attention_dim"}},
        heads = {"aggregate multihead needs attention_heads of at least 1 that divide hidden_size",
                 {"model.delta.aggregate", "model.delta.attention_heads", "model.hidden_size"}},
        evenly = {"aggregate multihead shares its heads evenly: tensor must divide attention_heads",
                  {"mesh.tensor", "model.delta.aggregate", "model.delta.attention_heads"}};
    const struct delta_config *delta = &m->delta;
    (void)settings;
    bool multihead = delta->aggregate == AGGREGATE_MULTIHEAD;
    const struct conflict *of_gate = gate_of(m)->conflict(m, sharing);
    if (tensor == 1 && of_gate) return of_gate;
    if (delta->aggregate == AGGREGATE_ATTENTION && delta->attention_dim < 1) return &dim;
    if (multihead && (delta->attention_heads < 1 || m->hidden_size % delta->attention_heads)) return &heads;
    if (multihead && delta->attention_heads % tensor) return &evenly;
    return of_gate;
}

static size_t own_bytes(const struct model_config *config, const struct rule_config *settings) {
    (void)settings;
    return sizeof(struct connections) + gate_of(config)->saved_bytes;
}

const struct rule rule_delta = {.name = "delta",
                                .places = 1u << PLACE_AFTER,
                                .measured = true,
                                .by_connection = true,
                                .edges = edges,
                                .connection_leaves = connection_leaves,
                                .layer_leaves = layer_leaves,
                                .flops = flops,
                                .conflict = conflict,
                                .widths = delta_widths,
                                .project = project_source,
                                .unproject = unproject_source,
                                .own_bytes = own_bytes,
                                .common_bytes = sizeof(struct delta_state),
                                .prepare = prepare_connections,
                                .release = release_connections,
                                .find = find_connections,
                                .lay_out = lay_out_connections,
                                .lay_out_scratch = lay_out_delta_scratch,
                                .forward = connections_forward,
                                .backward = connections_backward,
                                .again = recompute_connections,
                                .renew = renew_norms,
                                .watch = watch_connections};
