/* Where outputs of nodes lie: whole in their activation set; or, where no other chunk reads them, as low-rank
 * factors (compress.c), in bf16 (train.residual), or, where rows are divided, as own rows. Whole ones of the
 * latter three are there from the node's own layer up to the highest layer of the chunk that reads it, and on
 * the way back down again until the layer above the node is done: nodes take turns in a few whole buffers,
 * shared by all micro-batches. */
#include "kernels/base/status.h"
#include "model/pass/private.h"

enum { NOBODY = -2 }; /* the embedding is node −1 */

enum keep { KEEP_FULL, KEEP_FACTORS, KEEP_BF16, KEEP_ROWS };

/* Does the chunk alone use the node's output? Of others, later stages read all rows. */
static bool stays(const struct model *m, const struct chunk *chunk, int node) {
    struct span behind = {chunk->span.end, m->config.num_layers};
    return !feeds(m, node, behind) && (chunk->last || node < chunk->span.end - 1);
}

static enum keep keep_of(const struct model *m, const struct chunk *chunk, int node) {
    bool read = feeds(m, node, chunk->span);
    if (!stays(m, chunk, node)) return KEEP_FULL;
    if (m->compress > 0 && read && node >= 0) return KEEP_FACTORS;
    if (m->passes->narrow) return KEEP_BF16;
    return m->rows_divided && (!read || (m->passes->turns && node >= 0)) ? KEEP_ROWS : KEEP_FULL;
}

/* Does the node's whole output have a buffer in turn? */
static bool in_turn(const struct model *m, const struct chunk *chunk, int node) {
    enum keep keep = keep_of(m, chunk, node);
    return keep == KEEP_BF16 || (keep != KEEP_FULL && feeds(m, node, chunk->span));
}

static int first_node(const struct chunk *chunk) {
    return chunk->first ? -1 : chunk->span.first;
}

/* Gives each node of the chunk that has one in turn a buffer that is not in use while it needs it: turn
 * [num_layers + 1], entry 1 + node, and how many there are. */
static void deal_chunk(const struct model *m, const struct chunk *chunk, int *turn, int *taken) {
    int user[m->config.num_layers + 1];
    for (int i = 0; i <= m->config.num_layers; i++) user[i] = NOBODY;
    for (int node = first_node(chunk); node < chunk->span.end; node++) {
        int i = 0;
        turn[1 + node] = NOBODY;
        if (!in_turn(m, chunk, node)) continue;
        while (i < *taken && user[i] != NOBODY && node_top(m, chunk->span, user[i]) >= node) i++;
        if (i == *taken) ++*taken;
        user[i] = node;
        turn[1 + node] = i;
    }
}

static int deal(const struct model *m, int *turn) {
    int taken = 0;
    for (int c = 0; c < m->passes->chunks; c++) deal_chunk(m, &m->passes->chunk[c], turn, &taken);
    return taken;
}

/* What outputs take so, in halves of a number; factors do not count. */
static long room(const struct model *m, long T) {
    int turn[m->config.num_layers + 1];
    long halves = 2 * deal(m, turn) * T;
    const long each[] = {[KEEP_FULL] = 2 * T, [KEEP_FACTORS] = 0, [KEEP_BF16] = m->rows_max, [KEEP_ROWS] = 2 * m->rows_max};
    for (int c = 0; c < m->passes->chunks; c++) {
        const struct chunk *chunk = &m->passes->chunk[c];
        for (int node = first_node(chunk); node < chunk->span.end; node++)
            halves += chunk->activation_sets * each[keep_of(m, chunk, node)];
    }
    return halves;
}

/* A few whole buffers, and own rows or bf16 in activation sets, where that is less than whole outputs there. */
static void choose_turns(struct model *m, long T) {
    struct pass_state *p = m->passes;
    p->turns = p->narrow = false;
    long least = room(m, T), other;
    if (m->rows_divided && !(m->compress > 0)) {
        p->turns = true;
        if ((other = room(m, T)) < least)
            least = other;
        else
            p->turns = false;
    }
    if (!m->bf16_stream) return;
    p->narrow = true;
    if (room(m, T) < least)
        p->turns = false;
    else
        p->narrow = false;
}

static bool keeps_factors(const struct model *m, const struct chunk *chunk) {
    for (int node = first_node(chunk); node < chunk->span.end; node++)
        if (keep_of(m, chunk, node) == KEEP_FACTORS) return true;
    return false;
}

bool lay_out_turns(struct model *m, long T) {
    int turn[m->config.num_layers + 1];
    choose_turns(m, T);
    int taken = deal(m, turn);
    real *pool[taken + 1];
    bool factors = false;
    for (int i = 0; i < taken; i++) pool[i] = take(&m->nodes, T * m->stream);
    for (int c = 0; c < m->passes->chunks; c++) {
        const struct chunk *chunk = &m->passes->chunk[c];
        for (int node = first_node(chunk); node < chunk->span.end; node++)
            m->passes->restored[1 + node] = turn[1 + node] == NOBODY ? NULL : pool[turn[1 + node]];
        factors |= keeps_factors(m, chunk);
    }
    return factors;
}

real *lay_out_node(struct model *m, const struct chunk *chunk, struct activation_set *activation_set,
                   int node, long T) {
    long W = m->stream;
    struct kept_output *kept = &activation_set->kept[1 + node];
    kept->top = node_top(m, chunk->span, node);
    switch (keep_of(m, chunk, node)) {
    case KEEP_FACTORS:
        lay_out_factors(m, kept, T);
        return m->passes->restored[1 + node];
    case KEEP_BF16:
        kept->bf16 = arena_take(&m->nodes, (size_t)(m->rows_max * W) * sizeof *kept->bf16);
        return m->passes->restored[1 + node];
    case KEEP_ROWS:
        activation_set->rows[1 + node] = take(&m->nodes, m->rows_max * W);
        return m->passes->restored[1 + node];
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
        if (m->activation_set->rows[1 + node] && m->activation_set->kept[1 + node].top == layer &&
            node_is_read(m, node))
            gather_node(m, node);
}

void store_node(struct model *m, int node) {
    uint16_t *kept = m->activation_set->kept[1 + node].bf16;
    if (kept && m->gradients) m->ops->to_bf16(m->rows * m->stream, node_rows(m, node), kept);
}

void load_nodes(struct model *m, int layer) {
    long count = m->rows * m->stream;
    for (int node = m->span.first ? m->span.first : -1; node < layer && node < m->span.end; node++) {
        const struct kept_output *kept = &m->activation_set->kept[1 + node];
        if (!kept->bf16 || kept->top != layer) continue;
        m->ops->from_bf16(1, count, kept->bf16, node_rows(m, node), count);
        stream_written(m, node_rows(m, node));
        if (m->rows_divided && node_is_read(m, node)) gather_node(m, node);
    }
}

void check_turns(struct model *m) {
    if ((m->compress > 0 || m->passes->turns || m->passes->narrow) && m->passes->walk.on)
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
    const struct activation_set *set = &model->passes->chunk[chunk].activation_set[activation_set];
    const uint16_t *bf16 = set->kept[1 + node].bf16;
    *rows = end - first;
    if (set->rows[1 + node]) return set->rows[1 + node];
    real *own = model_output(model, chunk, activation_set, node) + first * model->stream;
    long count = *rows * model->stream;
    if (bf16) model->ops->from_bf16(1, count, bf16, own, count); /* others have had its buffer since */
    return own;
}
