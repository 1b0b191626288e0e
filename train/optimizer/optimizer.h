/* The update of the weights, by a row of rules.h, over the parameter table (model.md, 6), sharded: a rank
 * updates its own parts of each bucket alone (dist/layout/shard.h) and has moments for these only.
 *
 * Only the tensors that are trained at a step, the active rows, are touched: a connection that is not yet
 * introduced is not updated, not decayed, and its moments and step count stand still. The step count is per
 * tensor, so that a late connection gets its own bias correction.
 *
 * A step: optimizer_norm once all buckets are summed, then update.h. */
#ifndef GDN_OPTIMIZER_H
#define GDN_OPTIMIZER_H

#include "dist/mesh/mesh.h"
#include "dist/layout/deal.h"
#include "dist/layout/edge.h"
#include "dist/layout/shard.h"
#include "dist/layout/table.h"
#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "model/params/config.h"
#include "train/config/config.h"
#include "train/optimizer/rules.h"

/* Everything the optimiser walks over; it owns only its scratch. Fill in the rest, then optimizer_reserve. */
struct optimizer {
    const struct ops *ops; /* whose device `state` lies on, but for its step counts */
    const struct model_config *model;
    const struct train_config *train;
    const struct table *table;   /* with treatments (groups.h) */
    const struct shards *shards; /* of `table` of this copy */
    struct mesh *mesh;
    struct state *state; /* gradient, moments and steps must be there */

    const struct optimizer_rule *rule; /* by optimizer_reserve */

    struct arena scratch;   /* of what follows */
    double *own, *gathered; /* squares of this rank's blocks in sharded buckets; of every copy's */
    double *square;         /* [table->total / SHARD_GRAIN] squares of all blocks of the flat buffer */
    struct deal deal;       /* of the tensors that are updated as whole matrices (matrices.h) */
    struct arena matrices;  /* on the device: of what follows */
    real *whole;            /* a matrix put together from the tensor ranks' parts */
    real *workspace;        /* the rule's; before, parts of a matrix */
    struct arena on_device; /* of what follows, where the gradients do not lie on the host */
    double *found;          /* `square` as it is computed */
};

/* Reserves the scratch. Not collective. GDN_INTERNAL without memory. */
int optimizer_reserve(struct optimizer *optimizer);
void optimizer_free(struct optimizer *optimizer);
/* Bytes of the scratch with so many copies, for plans; and what has been reserved. */
long optimizer_planned(const struct train_config *train, const struct table *table,
                       const struct shards *shards, int copies);
long optimizer_reserved(const struct optimizer *optimizer);

/* The rule's arithmetic of a matrix of a run's `train` (struct train_config), for deal.h. */
double optimizer_matrix_cost(const void *train, long rows, long columns);

/* The global norm of the active rows' gradients over all ranks, each tensor's part counted once
 * (row.counted). Squares are summed in double over fixed blocks of SHARD_GRAIN elements of the flat buffer,
 * these in their order, then over the axes that divide the model by rank: neither buckets nor their order
 * show in the bits, which are the same on all ranks. `active`: the edges in use, NULL for all. Every rank's
 * own parts must hold the sums. Collective over all ranks. Returns the status of the axes. */
int optimizer_norm(struct optimizer *optimizer, const struct edge_set *active, double *norm);
/* Bytes that a copy hands to the others for it (the other axes: axis_formula_sum_doubles of 1). */
int64_t optimizer_formula_norm(const struct shards *shards, int copies);

/* What gradients of norm `norm` are multiplied with: grad_clip/(norm + 1e-6) where norm exceeds grad_clip (0:
 * never), else 1. */
double optimizer_clip(const struct optimizer *optimizer, double norm);

/* What all updates of a step share. */
struct rates {
    double lr;     /* learning rate */
    double decay;  /* the part of weight decay that is left */
    double gscale; /* what gradients are multiplied with */
};

/* What the rule is told of a piece. */
struct update optimizer_piece(const struct optimizer *optimizer, const struct piece *piece,
                              const struct rates *rates);

#endif
