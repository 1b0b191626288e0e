/* Recomputes, before a layer's backward pass, what the layer has not kept from its forward pass (model.h,
 * enum recompute_policy): the same calls at the same shapes on the same inputs, so that every bit is the
 * same (but in fp8, whose scales have changed in between). Layers that do not keep everything share one
 * set of buffers for the rest. Where that still holds what this layer wrote on the way forward, as for the
 * last layer before the head, nothing is computed. What is kept in bf16 comes back to these buffers, too
 * (store.c). */
#include "model/layer/stream.h"

/* The norm of its input. */
static void input_again(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    /* Of a compressed source x is not quite what it was: its norm stays the forward pass's (compress.c). */
    real *rstd = m->compress > 0 ? m->trunk->dh : layer->rstd1;
    norm_rows(m, read_block(m, l, BLOCK_MIXER, layer_input(m, l)), layer->norm1, layer->n1, rstd);
}

/* What else the layer's policy has not kept. */
static void rest_again(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    const struct mixer *mixer = layer->mixing.row;
    if (layer->policy >= mixer->again_from) mixer->again(m, &layer->mixing, stream_all(m, layer->n1));
    norm_rows(m, read_block(m, l, BLOCK_MLP, layer->a), layer->norm2, layer->n2, layer->rstd2);
    if (layer->policy == POLICY_FULL) layer_expand(m, l);
}

void recompute_layer(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    bool there = m->trunk->owner == layer;
    if (layer->policy == POLICY_NONE && !layer->stored.count) return;
    m->trunk->owner = NULL; /* the backward pass uses it up */
    load_layer(m, l);
    const bool rest = layer->policy != POLICY_NONE,
               input =
                   rest || (layer->mixing.inlet && m->bf16_activations); /* which create.c does not keep */
    if (input && !there) input_again(m, l);
    if (rest && !there) rest_again(m, l);
    round_layer(m, l);
}
