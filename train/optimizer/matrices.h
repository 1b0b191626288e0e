/* The part of an update that concerns whole matrices, for optimisers that have such (rules.h). Moments and
 * weights of a matrix are cut into parts like those of any tensor, and updated in parts; only what lies in
 * between sees the whole:
 *
 *   - every copy: rule.prepare of its own parts: the moments, and what the matrix is made of, in place
 *     of gradients;
 *   - all copies: each matrix's parts go to the rank that it is dealt to (dist/layout/deal.h), in place;
 *   - the tensor axis, in rounds of a matrix each: where it is split, its tensor rank gets the others' parts
 *     (dist/sync/rounds.h);
 *   - its rank: rule.matrix;
 *   - the tensor axis: the others get back their parts, or of what all have the same, all of it;
 *   - all copies: the parts go back to those who own them;
 *   - every copy: rule.update of its own parts (optimizer_update), from what then is in place of
 *     gradients.
 *
 * So states and checkpoints do not know of it, and each rank of a stage computes about as much; sums of
 * gradients stay as they are. Heads that are matrices of their own (WHOLE_HEADS) lie whole on a tensor rank,
 * which computes its own alone, as it does where it alone has a tensor, or where all have one that is not
 * worth a message; tensors that are one matrix together (WHOLE_JOINED) are put together one below the other.
 */
#ifndef GDN_OPTIMIZER_MATRICES_H
#define GDN_OPTIMIZER_MATRICES_H

#include "train/optimizer/optimizer.h"

/* All but the last item above, for active rows. Collective over copies and the tensor axis. GDN_INTERNAL. */
int matrices_update(struct optimizer *optimizer, const struct edge_set *active, double gscale);

/* What a rank does for it, for plans. */
struct matrices_cost {
    double flops;
    int64_t copy_bytes, tensor_bytes; /* handed over */
};
/* Raises each to another's where that is more. */
void matrices_raise(struct matrices_cost *most, const struct matrices_cost *cost);
/* Fills out [copies], of all rows, at the tensor index of `ranks`. Not collective. GDN_INTERNAL without
 * memory. */
int matrices_plan(const struct train_config *train, const struct table *table, const struct shards *shards,
                  const struct deal_ranks *ranks, struct matrices_cost *out);

#endif
