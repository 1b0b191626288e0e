/* What a rank's actions cost: its passes run dry, on a model without memory, with operations and sums that
 * only count. */
#ifndef GDN_PLAN_COST_H
#define GDN_PLAN_COST_H

#include "dist/layout.h"
#include "dist/schedule.h"
#include "dist/table.h"
#include "model/model.h"
#include "train/plan_simulate.h"

/* The rank and its work. */
struct costing {
    const struct model_config *config;
    const struct layout *layout;
    const struct table *table; /* of that layout */
    const struct edges *edges;
    const struct schedule *schedule;
    const struct shards *shards; /* whose buckets the schedule's list for the rank names */
    const int *slots;            /* [layout->chunks] */
    long batch, length;          /* of a micro-batch */
    const struct loss_options *options;
};

/* What passes cost, for any micro-batch. */
struct pass_costs {
    int chunks, layers, edges;
    struct action_cost *forward;             /* [chunks] */
    struct action_cost *backward;            /* [layers + 2] by 1 + layer */
    struct action_cost *project, *unproject; /* [edges] */
    struct model_memory memory;
    int64_t scratch; /* bytes for sums over the tensor axis within passes */
};

/* Not collective. GDN_INTERNAL without memory. */
int pass_costs_create(const struct costing *costing, struct pass_costs *out);
void pass_costs_free(struct pass_costs *costs);
/* Raises each cost to that of `other`, another tensor index's, where that is more. */
void pass_costs_raise(struct pass_costs *costs, const struct pass_costs *other);

/* Fills cost [count of the rank's actions]. */
void cost_actions(const struct costing *costing, const struct pass_costs *passes, struct action_cost *cost);

/* Bytes of a message between stages. */
int64_t cost_message(const struct model_config *config, const struct layout *layout, long tokens,
                     const struct action *action);

/* The arithmetic of one micro-batch, forward and backward, on one rank that has the whole model. */
int cost_whole(const struct model_config *config, long batch, long length, const struct loss_options *options,
               double *flops);

#endif
