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

/* What is dropped at a site of a layer (of a gate, of the connection of this distance; else 0) in rows of
 * tokens from `row` of the micro-batch on. */
struct mask dropout_mask(const struct model *m, enum dropout_site site, int layer, int distance, double rate,
                         long row);

#endif
