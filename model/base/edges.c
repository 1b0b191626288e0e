/* Which layers read a node, asked of the edge table. */
#include "model/base/base.h"

bool feeds(const struct model *m, int node, struct span span) {
    const struct edges *edges = &m->edges;
    for (int i = edges->leaves[1 + node]; i < edges->leaves[2 + node]; i++) {
        int target = edges->edge[edges->leaving[i]].target;
        if (target >= span.first && target < span.end) return true;
    }
    return false;
}

bool node_is_read(const struct model *m, int node) {
    const struct edges *edges = &m->edges;
    for (int i = edges->leaves[1 + node]; i < edges->leaves[2 + node]; i++)
        if (edge_set_has(m->pass->options->active, edges->leaving[i])) return true;
    return false;
}

int node_top(const struct model *m, struct span span, int node) {
    int top = node + 1;
    for (int l = node + 2; l < span.end; l++)
        if (feeds(m, node, (struct span){l, l + 1})) top = l;
    return top;
}

int active_into(const struct model *m, int layer) {
    return edge_set_into(m->pass->options->active, &m->edges, layer);
}
