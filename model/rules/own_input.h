/* Private to model/rules/: queries, keys or values of an input of their own (model.md, 12): as if they were
 * projected from the norm of another stream in place of the layer's, h ← h + M (norm(own) − norm(x)), with
 * the layer's own norm and map M. Where nothing is at the place yet, as the mixer has left its product out
 * (heads.empty), h = M norm(own) in its stead: no more products than without the rule. */
#ifndef GDN_OWN_INPUT_H
#define GDN_OWN_INPUT_H

#include "model/rule/rule.h"

/* Of a layer: its input_layernorm, and this rank's rows of its q_proj, k_proj or v_proj, whose bias, where it
 * has one, comes with the product in the mixer's stead. */
struct own_input {
    struct tensor norm, map, bias;
};

/* Scratch of one place: the stream in place of x, which callers fill, and its gradient, [R, D] each. */
struct own_stream {
    real *own, *down;
};

/* And what all places share. */
struct own_input_scratch {
    real *rstd; /* [R] of a stream in place of x */
    real *n;    /* [T, D] its norm, less the layer's where that is projected too */
    real *dn;   /* [T, D] */
};

/* The layers' mixers have such maps, each place's own. */
const struct conflict *own_input_conflict(const struct model_config *config);
/* Arithmetic per token of one place. */
double own_input_flops(const struct model_config *config, enum rule_place place);

void own_input_find(const struct model *m, int layer, enum rule_place place, struct own_input *input);
void own_input_lay_out_stream(struct model *m, struct own_stream *stream);
void own_input_lay_out_scratch(struct model *m, struct own_input_scratch *s, long T);

/* From own [R, D], at x->heads. Collective over the tensor axis. */
void own_input_forward(struct model *m, const struct rule_layer *x, const struct own_input *input,
                       const struct own_input_scratch *s, const real *own);
/* From stream->own and the heads' gradient: fills stream->down, and adds to the gradients of norm, map and n.
 * Collective over the tensor axis. */
void own_input_backward(struct model *m, const struct rule_layer *x, const struct own_input *input,
                        const struct own_input_scratch *s, const struct own_stream *stream);

#endif
