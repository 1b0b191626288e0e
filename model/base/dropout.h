/* Private to model/: dropout in training (model.md, 1 and 3). Each place where a model drops has a key of its
 * own in every step, and an element is kept or not by the number of its sequence in the whole batch, its
 * position and its column in the whole matrix: masks are the same on any mesh, with micro-batches of any
 * size, and when a backward pass or a recomputation asks for them again. */
#ifndef GDN_MODEL_DROPOUT_H
#define GDN_MODEL_DROPOUT_H

#include "model/base/base.h"

enum dropout_site { DROP_MIXER, DROP_MLP, DROP_ATTENTION, DROP_GATE };

/* Does the pass in progress drop at all, at a rate of the configuration? Evaluations never do. */
static inline bool drops(const struct model *m, double rate) {
    return rate > 0 && m->gradients;
}

/* Does the pass in progress leave the layer out? A plan has all of them. */
bool drops_layer(const struct model *m, int layer);

/* What is dropped at a site of a layer (of a gate, of the connection of this distance; else 0): the first row is
 * the pass's first sequence's first token, and rows of whole sequences follow, also of those that are cut. */
struct mask dropout_mask(const struct model *m, enum dropout_site site, int layer, int distance, double rate);

/* y = x/(1 − p) where the mask keeps the element, else 0, of `count` rows of the micro-batch from `first` on:
 * x, y [count, W], y may be x. */
void dropout_rows(const struct model *m, const struct mask *mask, long first, long count, long W, const real *x,
                  long ldx, real *y, long ldy);

#endif
