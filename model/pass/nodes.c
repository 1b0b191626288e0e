/* Where outputs of nodes lie: whole in their activation set; as low-rank factors (compress.c); or, where rows
 * are divided and no other chunk reads them, as own rows. Whole ones of the latter two are there from the
 * node's own layer up to the highest layer of the chunk that reads it, and on the way back down again until
 * the layer above the node is done: nodes take turns in a few whole buffers, shared by all micro-batches. */
#include "kernels/base/status.h"
#include "model/pass/private.h"

enum { NOBODY = -1 };

enum keep { KEEP_FULL, KEEP_FACTORS, KEEP_ROWS };

/* Does the chunk alone use the node's output? Of others, later stages read all rows. */
static bool stays(const struct model *m, const struct chunk *chunk, int node) {
    struct span behind = {chunk->span.end, m->config.num_layers};
    return !feeds(m, node, behind) && (chunk->last || node < chunk->span.end - 1);
}

static enum keep keep_of(const struct model *m, const struct chunk *chunk, int node) {
    bool read = feeds(m, node, chunk->span);
    if (!stays(m, chunk, node)) return KEEP_FULL;
    if (m->compress > 0 && read && node >= 0) return KEEP_FACTORS;
    return m->rows_divided && (!read || (m->passes->turns && node >= 0)) ? KEEP_ROWS : KEEP_FULL;
}

/* Does the node's whole output have a buffer in turn? */
static bool in_turn(const struct model *m, const struct chunk *chunk, int node) {
    return keep_of(m, chunk, node) != KEEP_FULL && feeds(m, node, chunk->span);
}

/* Gives each node of the chunk that has one in turn a buffer that is not in use while it needs it: turn
 * [num_layers], and how many there are. */
static void deal_chunk(const struct model *m, const struct chunk *chunk, int *turn, int *taken) {
    int user[m->config.num_layers];
    for (int i = 0; i < m->config.num_layers; i++) user[i] = NOBODY;
    for (int node = chunk->span.first; node < chunk->span.end; node++) {
        int i = 0;
        turn[node] = NOBODY;
        if (!in_turn(m, chunk, node)) continue;
        while (i < *taken && user[i] != NOBODY && node_top(m, chunk->span, user[i]) >= node) i++;
        if (i == *taken) ++*taken;
        user[i] = node;
        turn[node] = i;
    }
}

static int deal(const struct model *m, int *turn) {
    int taken = 0;
    for (int c = 0; c < m->passes->chunks; c++) deal_chunk(m, &m->passes->chunk[c], turn, &taken);
    return taken;
}

/* Are own rows in activation sets and a few whole buffers less than whole outputs in activation sets? */
static bool turns_pay(struct model *m, long T) {
    int turn[m->config.num_layers];
    long nodes = 0;
    m->passes->turns = true;
    long taken = deal(m, turn);
    for (int c = 0; c < m->passes->chunks; c++)
        for (int node = m->passes->chunk[c].span.first; node < m->passes->chunk[c].span.end; node++)
            nodes += turn[node] != NOBODY ? m->passes->chunk[c].activation_sets : 0;
    return taken * T + nodes * m->rows_max < nodes * T;
}

int lay_out_turns(struct model *m, long T) {
    int turn[m->config.num_layers];
    m->passes->turns = m->rows_divided && !(m->compress > 0) && turns_pay(m, T);
    int taken = deal(m, turn);
    real *pool[taken + 1];
    for (int i = 0; i < taken; i++) pool[i] = take(&m->nodes, T * m->stream);
    for (int c = 0; c < m->passes->chunks; c++)
        for (int node = m->passes->chunk[c].span.first; node < m->passes->chunk[c].span.end; node++)
            m->passes->restored[node] = turn[node] == NOBODY ? NULL : pool[turn[node]];
    return taken;
}

real *lay_out_node(struct model *m, const struct chunk *chunk, struct activation_set *activation_set,
                   int node, long T) {
    long W = m->stream;
    switch (keep_of(m, chunk, node)) {
    case KEEP_FACTORS:
        lay_out_factors(m, &activation_set->kept[node], T);
        activation_set->kept[node].top = node_top(m, chunk->span, node);
        return m->passes->restored[node];
    case KEEP_ROWS:
        activation_set->rows[1 + node] = take(&m->nodes, m->rows_max * W);
        if (node >= 0) activation_set->kept[node].top = node_top(m, chunk->span, node);
        return node < 0 ? NULL : m->passes->restored[node];
    default:
        return take(&m->nodes, T * W);
    }
}

void gather_node(struct model *m, int node) {
    const real *rows = m->activation_set->rows[1 + node];
    real *full = node_output(m, node);
    if (rows) m->ops->copy(m->rows * m->stream, rows, stream_rows(m, full));
    stream_full(m, full);
}

void gather_sources(struct model *m, int layer) {
    if (!m->passes->turns) return;
    for (int node = m->span.first; node < layer; node++)
        if (m->activation_set->rows[1 + node] && m->activation_set->kept[node].top == layer &&
            node_is_read(m, node))
            gather_node(m, node);
}

void check_turns(struct model *m) {
    if ((m->compress > 0 || m->passes->turns) && m->passes->walk.on)
        pass_failed(m, gdn_fail(GDN_INTERNAL,
                                "a forward pass begins before the backward pass of layers %d to %d is done, "
                                "whose sources lie in the buffers that it needs",
                                m->passes->chunk[m->passes->walk.chunk].span.first,
                                m->passes->chunk[m->passes->walk.chunk].span.end - 1));
}

real *model_output(const struct model *model, int chunk, int activation_set, int node) {
    const struct activation_set *s = &model->passes->chunk[chunk].activation_set[activation_set];
    return node < 0 ? s->x0 : s->layer[node].z;
}

const real *model_output_rows(const struct model *model, int chunk, int activation_set, int node, long T,
                              long *rows) {
    const struct axis *tensor = model->tensor;
    long first = model->rows_divided ? axis_first_row(tensor, T, tensor->index) : 0;
    long end = model->rows_divided ? axis_first_row(tensor, T, tensor->index + 1) : T;
    const real *own = model->passes->chunk[chunk].activation_set[activation_set].rows[1 + node];
    *rows = end - first;
    return own ? own : model_output(model, chunk, activation_set, node) + first * model->stream;
}
