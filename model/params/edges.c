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
    struct edge *list = malloc((size_t)(model->num_layers * delta->num_distances + 1) * sizeof *list);
    if (!list)
        return gdn_fail(GDN_INTERNAL, "out of memory for the edge table of %d layers", model->num_layers);
    int count = 0;
    for (int layer = 0; layer < model->num_layers; layer++)
        for (int i = 0; i < delta->num_distances && delta->distances[i] <= reach(layer, delta); i++) {
            int d = delta->distances[i];
            list[count++] = (struct edge){
                .target = layer, .source = layer - d, .scale = distance_scale(d, delta)};
        }
    int status = edges_of(list, count, model->num_layers, out);
    free(list);
    return status;
}

int edges_introduced(const struct edges *edges, const struct delta_config *delta, int active,
                     struct edge_set *out) {
    bool *has = calloc((size_t)edges->count + 1, sizeof *has);
    if (!has) return gdn_fail(GDN_INTERNAL, "out of memory for a set of %d edges", edges->count);
    for (int e = 0; e < edges->count; e++)
        for (int i = 0; i < active && i < delta->num_distances; i++)
            if (delta->distances[i] == edges->edge[e].distance) has[e] = true;
    int status = edge_set_create(edges, has, out);
    free(has);
    return status;
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
