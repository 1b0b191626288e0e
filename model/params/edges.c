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
