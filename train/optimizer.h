/* AdamW with decoupled weight decay (Loshchilov & Hutter 2019) over the parameter table (model.md, 6).
 *
 * Only the tensors that are trained at a step, the active rows, are touched: a connection that is not yet
 * introduced is not updated, not decayed, and its moments and step count stand still. The step count is per
 * tensor, so that a late connection gets its own bias correction. Every rank holds all gradients' sums and
 * does the same update. */
#ifndef GDN_OPTIMIZER_H
#define GDN_OPTIMIZER_H

#include "dist/table.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "train/config.h"

/* Everything the optimiser walks over; it owns none of it. */
struct optimizer {
    const struct ops *ops;
    const struct model_config *model;
    const struct train_config *train;
    const struct table *table;
    struct state *state; /* exp_avg, exp_avg_sq and steps must be there */
};

/* The global norm of the active rows' gradients, summed in double in table order. `active`: how many of the
 * distances are introduced. Not collective. */
double optimizer_norm(const struct optimizer *optimizer, int active);

/* One update of the active rows with learning rate `lr`; gradients of norm `norm` are multiplied by
 * grad_clip/(norm + 1e-6) where norm exceeds grad_clip (0: never). Not collective. */
void optimizer_step(const struct optimizer *optimizer, int active, double lr, double norm);

#endif
