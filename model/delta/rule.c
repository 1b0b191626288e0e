/* The gated delta connections as a rule between layers: what they are in a configuration (model.md, 2 to 4).
 */
#include "model/delta/private.h"
#include "model/params/edges.h"
#include "model/params/stream.h"

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

/* Those that are listed, always active. */
static int listed(const struct delta_config *delta, int layer, struct edge *edge) {
    const struct delta_edge *of;
    int n = delta_edges_into(delta, layer, &of);
    for (int i = 0; i < n; i++)
        edge[i] =
            (struct edge){.source = of[i].source, .scale = distance_scale(layer - of[i].source, delta)};
    return n;
}

static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    const struct delta_config *delta = &config->delta;
    int n = 0;
    (void)settings;
    if (delta->num_edges) return listed(delta, layer, edge);
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
    if (gate->mixed || aggregate_of(m)->mix)
        leaf[n++] = leaf_vector("mix", SPLIT_NONE, 1, gate->mixed ? 0 : 1);
    return n;
}

static int layer_leaves(const struct model_config *m, const struct rule_config *settings, struct leaf *leaf) {
    (void)settings;
    return aggregate_leaves(m, leaf);
}

/* Matrix products in the direct form. */
static double flops(const struct model_config *m, const struct rule_config *settings, int n) {
    const struct aggregate *aggregate = aggregate_of(m);
    (void)settings;
    return n * gate_of(m)->flops(m) + (n && aggregate->flops ? aggregate->flops(m, n) : 0);
}

static const struct conflict *conflict(const struct model_config *m, const struct rule_config *settings,
                                       int tensor, int sharing) {
    const struct aggregate *aggregate = aggregate_of(m);
    const struct conflict *of_gate = gate_of(m)->conflict(m, sharing),
                          *of_aggregate = aggregate->conflict ? aggregate->conflict(m, tensor) : NULL;
    (void)settings;
    if (tensor == 1 && of_gate) return of_gate;
    return of_aggregate ? of_aggregate : of_gate;
}

static bool rms(const struct model_config *m, const struct rule_config *settings) {
    (void)settings;
    return aggregate_of(m)->rms;
}

/* What of its sources may travel narrow, and how wide that is (narrow.c). */
static struct route_widths widths(const struct model_config *config, const struct rule_config *settings,
                                  const struct layout *layout) {
    const struct gate *gate = gate_of(config);
    const struct aggregate *aggregate = aggregate_of(config);
    struct leaf leaf[MAX_GATE_LEAVES], of_layer[MAX_AGGREGATE_LEAVES];
    struct route_widths out = {.narrow = layout->narrow && !layout_by_connection(layout) && gate->linear &&
                                         !config->delta.normalize,
                               .node = stream_width(config),
                               .edge = aggregate->rms};
    (void)settings;
    gate->leaves(config, leaf);
    for (int i = 0; i < gate->maps; i++) {
        const struct leaf *w = &leaf[gate->map[i].leaf];
        out.edge += w->out / (w->split == SPLIT_NONE ? 1 : layout->size[AXIS_TENSOR]);
    }
    aggregate_leaves(config, of_layer);
    for (int i = 0; i < aggregate->maps; i++) out.edge += of_layer[aggregate->map[i]].out;
    return out;
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
                                .rms = rms,
                                .widths = widths,
                                .project = project_source,
                                .unproject = unproject_source,
                                .own_bytes = sizeof(struct connections),
                                .more_bytes = connection_bytes,
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
