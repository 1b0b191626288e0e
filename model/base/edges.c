/* Which layers read a node, asked of the edge table. */
#include "model/base/base.h"

bool feeds(const struct model *m, int node, struct span span) {
    const struct delta_config *delta = &m->config.delta;
    for (int i = 0; i < delta->num_distances; i++) {
        int l = node + delta->distances[i]; /* which has an edge for each of the first so many distances */
        if (l >= span.first && l < span.end && i < m->edges.first[l + 1] - m->edges.first[l]) return true;
    }
    return false;
}

bool node_is_read(const struct model *m, int node) {
    const struct delta_config *delta = &m->config.delta;
    for (int i = 0; i < delta->num_distances; i++) {
        int l = node + delta->distances[i];
        if (l < m->config.num_layers && i < active_edges(&m->edges, l, m->pass->options->active)) return true;
    }
    return false;
}

int node_top(const struct model *m, struct span span, int node) {
    int top = node + 1;
    for (int l = node + 2; l < span.end; l++)
        if (feeds(m, node, (struct span){l, l + 1})) top = l;
    return top;
}

long total_edges(struct model *m, int active) {
    if (m->total_for == active) return m->total;
    m->total_for = active;
    m->total = 0;
    for (int l = 0; l < m->config.num_layers; l++) m->total += active_edges(&m->edges, l, active);
    return m->total;
}
