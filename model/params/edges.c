#include "model/params/edges.h"
#include "kernels/base/status.h"

#include <math.h>
#include <stdlib.h>

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

int edges_create(const struct model_config *model, struct edges *out) {
    const struct delta_config *delta = &model->delta;
    int max = model->num_layers * delta->num_distances;
    *out = (struct edges){.edge = malloc((size_t)(max + 1) * sizeof *out->edge),
                          .first = malloc((size_t)(model->num_layers + 1) * sizeof *out->first)};
    if (!out->edge || !out->first) {
        edges_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory for the edge table of %d layers", model->num_layers);
    }
    for (int layer = 0; layer < model->num_layers; layer++) {
        out->first[layer] = out->count;
        for (int i = 0; i < delta->num_distances && delta->distances[i] <= reach(layer, delta); i++) {
            int d = delta->distances[i];
            out->edge[out->count++] = (struct edge){.target = layer,
                                                    .distance = d,
                                                    .source = layer - d,
                                                    .connection = i,
                                                    .scale = distance_scale(d, delta)};
        }
    }
    out->first[model->num_layers] = out->count;
    return 0;
}

void edges_free(struct edges *edges) {
    free(edges->edge);
    free(edges->first);
    *edges = (struct edges){0};
}

int active_distances(const struct delta_config *delta, long step) {
    if (delta->stage_steps <= 0) return delta->num_distances;
    long stage = step / delta->stage_steps + 1;
    return stage < delta->num_distances ? (int)stage : delta->num_distances;
}

int active_edges(const struct edges *edges, int layer, int active) {
    int n = edges->first[layer + 1] - edges->first[layer];
    return n < active ? n : active;
}
