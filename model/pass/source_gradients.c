/* Source gradients: the sum of what layers add for each node that they read as a source, until the
 * backward pass reaches the node and adds it to the stream's gradient. Where the pass has no buffer for it
 * (struct pass), it is one of a few that nodes use in turn: a node's is in use from the highest layer of
 * the chunk that reads the node down to the node's own layer. */
#include "kernels/base/status.h"
#include "model/pass/private.h"

enum { NOBODY = -2 }; /* the embedding is node −1 */

/* The nodes whose source gradients a walk collects: the chunk's own, and the one that it starts from. */
static int lowest_node(struct span span) {
    return span.first - 1;
}

/* Gives the nodes that layer l is the first to leave something at a buffer that is not in use; user [taken]
 * is the node that has each, or NOBODY. */
static void assign(struct model *m, struct span span, int l, real **pool, int *user, int *taken, long T) {
    for (int e = m->edges.first[l]; e < m->edges.first[l + 1]; e++) {
        int node = m->edges.edge[e].source, i = 0;
        if (node < lowest_node(span) || feeds(m, node, (struct span){l + 1, span.end})) continue;
        while (i < *taken && user[i] != node) i++;
        if (i < *taken) continue; /* another rule reads it too */
        for (i = 0; i < *taken && user[i] != NOBODY;) i++;
        if (i == *taken) pool[(*taken)++] = take(&m->scratch, T * m->stream);
        user[i] = node;
        m->rules->source_gradient[1 + node] = pool[i];
    }
}

void lay_out_source_gradients(struct model *m, long T) {
    real *pool[m->config.num_layers];
    int user[m->config.num_layers], taken = 0;
    for (int c = 0; c < m->passes->chunks; c++) { /* walked one after the other, so they share the pool */
        struct span span = m->passes->chunk[c].span;
        for (int i = 0; i < m->config.num_layers; i++) user[i] = NOBODY;
        for (int l = span.end - 1; l >= span.first; l--) {
            assign(m, span, l, pool, user, &taken, T);
            for (int i = 0; i < taken; i++)
                if (user[i] == l - 1) user[i] = NOBODY; /* collected after layer l */
        }
    }
}

void begin_source_gradients(struct model *m) {
    for (int node = lowest_node(m->span); node < m->span.end; node++)
        m->passes->walk.owed[1 + node] = m->pass->source_gradient && m->pass->source_gradient[1 + node];
}

void open_source_gradients(struct model *m, int layer) {
    for (int e = m->edges.first[layer]; e < m->edges.first[layer + 1]; e++) {
        int node = m->edges.edge[e].source;
        if (!edge_set_has(m->pass->options->active, e)) continue;
        if (node < lowest_node(m->span) || m->passes->walk.owed[1 + node]) continue;
        m->passes->walk.owed[1 + node] = true;
        m->ops->zero(m->T * m->stream, m->rules->source_gradient[1 + node]);
    }
}

void collect_source_gradient(struct model *m, int node) {
    if (!m->passes->walk.owed[1 + node]) return;
    long W = m->stream, at = m->row0 * W;
    real *source_gradient = source_gradient_of(m, node);
    stream_sum(m, source_gradient);
    m->ops->add(m->rows * W, source_gradient + at, m->g + at);
    m->g_full = !m->rows_divided;
    m->passes->walk.owed[1 + node] = false;
}

void check_source_gradients(struct model *m) {
    for (int node = lowest_node(m->span); node < m->span.end; node++)
        if (m->passes->walk.owed[1 + node])
            pass_failed(
                m, gdn_fail(GDN_INTERNAL,
                            "gradients left at node %d were not collected by the backward pass of layers "
                            "%d to %d",
                            node, m->span.first, m->span.end - 1));
}
