/* Whole matrices: the parts of a flat buffer that copies own of some tensors (shard.h), brought to one
 * rank each and back, in place. What tensor ranks do together of them is in rounds.h. */
#ifndef GDN_SYNC_WHOLE_H
#define GDN_SYNC_WHOLE_H

#include "dist/layout/deal.h"
#include "dist/layout/shard.h"
#include "dist/mesh/mesh.h"

/* Each active tensor's owner gets from the other copies what they own of it: its rank has all of the
 * tensor (its part on this tensor rank; nothing of a copy that another tensor rank works on for all). And the
 * other way round: every rank's own parts are as the owner has them. Collective over all copies, with
 * nothing else under way on it. GDN_INTERNAL. */
int whole_collect(struct mesh *mesh, const struct table *table, const struct shards *shards,
                  const struct deal *deal, real *x);
int whole_hand_back(struct mesh *mesh, const struct table *table, const struct shards *shards,
                    const struct deal *deal, real *x);

/* Adds to bytes [copies] what each copy hands over for both at the tensor index, of all tensors of the
 * list. */
void whole_formula(const struct table *table, const struct shards *shards, const struct deal *deal,
                   const struct deal_ranks *ranks, int64_t *bytes);

#endif
