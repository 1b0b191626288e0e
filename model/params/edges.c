#include "model/params/edges.h"
#include "kernels/base/status.h"

#include <stdlib.h>

int edges_introduced(const struct edges *edges, int active, struct edge_set *out) {
    bool *has = calloc((size_t)edges->count + 1, sizeof *has);
    if (!has) return gdn_fail(GDN_INTERNAL, "out of memory for a set of %d edges", edges->count);
    for (int e = 0; e < edges->count; e++) has[e] = edges->edge[e].introduced <= active;
    int status = edge_set_create(edges, has, out);
    free(has);
    return status;
}

int delta_most_into(const struct delta_config *delta) {
    int most = delta->num_distances, into = 0;
    for (int e = 0; e < delta->num_edges; e++) {
        into = e && delta->edges[e].target == delta->edges[e - 1].target ? into + 1 : 1;
        if (into > most) most = into;
    }
    return most;
}

/* The first edge into this layer or a higher one. */
static int first_edge(const struct delta_config *delta, int layer) {
    int low = 0, high = delta->num_edges;
    while (low < high) {
        int middle = (low + high) / 2;
        if (delta->edges[middle].target < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int delta_edges_into(const struct delta_config *delta, int layer, const struct delta_edge **first) {
    int begin = first_edge(delta, layer);
    *first = &delta->edges[begin];
    return first_edge(delta, layer + 1) - begin;
}

static int by_target(const void *a, const void *b) {
    const struct delta_edge *x = a, *y = b;
    return x->target != y->target ? x->target - y->target : y->source - x->source;
}

void delta_edges_sort(struct delta_config *delta) {
    qsort(delta->edges, (size_t)delta->num_edges, sizeof *delta->edges, by_target);
}

int active_distances(const struct delta_config *delta, long step) {
    if (delta->stage_steps <= 0) return delta->num_distances;
    long stage = step / delta->stage_steps + 1;
    return stage < delta->num_distances ? (int)stage : delta->num_distances;
}

int measured_into(const struct edges *edges, const struct edge_set *set, int layer) {
    int n = 0;
    for (int e = edges->first[layer]; e < edges->first[layer + 1]; e++)
        n += edges->edge[e].measured && edge_set_has(set, e);
    return n;
}
