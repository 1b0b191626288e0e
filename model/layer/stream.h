/* Private to model/: the residual stream over the tensor axis (stream.c), and where outputs of nodes are. A
 * node is a layer's output, −1 the embedding's. */
#ifndef GDN_STREAM_H
#define GDN_STREAM_H

#include "model/layer/layer.h"

/* x [T, W], of the stream, or [T, D], what a block reads of it or adds to it, holds this rank's terms of a
 * sum over the tensor axis; afterwards its own rows hold the sum. */
void stream_sum(struct model *m, real *x);
void block_sum(struct model *m, real *x);
/* The own rows of x, [T, W] or [T, D], are valid; afterwards all are. */
void stream_full(struct model *m, real *x);
void block_full(struct model *m, real *x);
/* All rows [T, D] of a block of which own [R, D] are here: itself where rows are not divided, else scratch
 * until another block is asked for. Who writes a block anew says so before. */
const real *stream_all(struct model *m, const real *own);
void stream_written(struct model *m, const real *own);
/* Own rows x [R, W] have been written to the stream: where that is stored in bf16 they become what is. */
void stream_round(struct model *m, real *x);
/* All rows of m->g become valid. */
void gradient_full(struct model *m);

/* The own rows of x: [T, W] of the stream, [T, D] of a block. */
static inline real *stream_rows(const struct model *m, const real *x) {
    return (real *)x + m->row0 * m->stream;
}
static inline real *own_rows(const struct model *m, const real *x) {
    return (real *)x + m->row0 * m->config.hidden_size;
}
/* Is a node computed by the pass's chunk? */
static inline bool own_node(const struct model *m, int node) {
    return node < 0 ? m->span.first == 0 : node >= m->span.first && node < m->span.end;
}
/* The output of a node: a layer's z, or the embedding output for −1; of a node that another chunk computes
 * what the pass brings; NULL where that is only a projected source. */
static inline real *node_output(const struct model *m, int node) {
    if (own_node(m, node)) return node < 0 ? m->activation_set->x0 : m->layer[node].z;
    return m->pass->source ? m->pass->source[1 + node] : NULL;
}
/* The own rows [R, W] of a node's output. */
static inline real *node_rows(const struct model *m, int node) {
    real *rows = own_node(m, node) ? m->activation_set->rows[1 + node] : NULL;
    return rows ? rows : stream_rows(m, node_output(m, node));
}
/* The own rows [R, W] of what a layer reads. */
static inline real *layer_input(const struct model *m, int l) {
    return m->layer[l].x ? m->layer[l].x : node_rows(m, l - 1);
}

#endif
