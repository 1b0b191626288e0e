/* The backward pass of a layer. One gradient, m->g, walks down the residual stream and grows in place: at the
 * top of a layer it is the gradient of z, then of y, a and x. Over the tensor axis a norm's upstream gradient
 * dn is a sum over ranks; where rows are divided, m->g is kept up in the own rows and gathered for each
 * product, and so are the norms' outputs. */
#include "model/base/dropout.h"
#include "model/base/terms.h"
#include "model/layer/stream.h"

/* From this rank's terms of dn [T, D], the gradient of the output of a block's norm: adds to m->g. x: own
 * rows. */
static void norm_backward(struct model *m, int l, enum block block, const real *x, struct tensor norm,
                          const real *rstd, real *dn) {
    block_sum(m, dn);
    read_block_back(m, l, block, x, norm, rstd, own_rows(m, dn));
}

/* All rows [T, D] of the gradient of what a block adds to the stream x, own rows, but for what was dropped.
 */
static const real *added_gradient(struct model *m, int l, enum block block, const real *x) {
    static const enum dropout_site site[BLOCKS] = {DROP_MIXER, DROP_MLP};
    const double rate = m->config.dropout.residual;
    const long D = m->config.hidden_size;
    const real *added = write_block_back(m, l, block, x);
    if (!drops(m, rate)) return added;
    const struct mask mask = dropout_mask(m, site[block], l, 0, rate);
    dropout_rows(m, &mask, 0, m->T, D, added, D, m->trunk->added, D);
    return m->trunk->added;
}

static void mlp_backward(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    const struct ops *ops = m->ops;
    struct trunk *t = m->trunk;
    long T = m->T, D = m->config.hidden_size, F = t->F;
    int gate_up = mlp_weight_id(layer, WEIGHT_GATE_UP), down = mlp_weight_id(layer, WEIGHT_DOWN);
    real *dn = t->t1;
    const real *dy = added_gradient(m, l, BLOCK_MLP, layer->a);
    ops->linear(down, 'N', 'N', T, F, D, 1, dy, D, layer->down.w, F, 0, t->dh, F);
    ops->swiglu_back(T, F, layer->gu, t->dh, t->dgu, t->h);
    weight_gradient(m, down, D, F, T, 1, dy, D, t->h, F, layer->down.g, F);
    linear_terms(m, &(struct terms){.weight_id = gate_up,
                                    .transposed = 'N',
                                    .k = 2 * F,
                                    .a = t->dgu,
                                    .lda = 2 * F,
                                    .w = layer->gate_up.w,
                                    .ldw = D,
                                    .out = dn});
    weight_gradient(m, gate_up, 2 * F, D, T, 1, t->dgu, 2 * F, stream_all(m, layer->n2), D, layer->gate_up.g,
                    D);
    norm_backward(m, l, BLOCK_MLP, layer->a, layer->norm2, layer->rstd2, dn);
}

void layer_backward(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    real *dn = m->trunk->t1;
    recompute_layer(m, l);
    mlp_backward(m, l);
    const real *x = layer_input(m, l), *da = added_gradient(m, l, BLOCK_MIXER, x);
    layer->mixing.row->backward(m, &layer->mixing, da, stream_all(m, layer->n1), dn);
    norm_backward(m, l, BLOCK_MIXER, x, layer->norm1, layer->rstd1, dn);
}

void embedding_backward(struct model *m) {
    struct trunk *t = m->trunk;
    m->ops->embed_back(m->T, m->config.hidden_size, t->input, t->first_token, t->V, begin_streams_back(m),
                       t->embed.g);
}
