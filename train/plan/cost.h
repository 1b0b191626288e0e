/* What a rank's actions cost: passes and messages as a dry run counts them (plan/passes.c), what comes after
 * by the formulas of the calls that do it (plan/cost.c). */
#ifndef GDN_PLAN_COST_H
#define GDN_PLAN_COST_H

#include "dist/layout/layout.h"
#include "dist/layout/table.h"
#include "model/model.h"
#include "train/optimizer/matrices.h"
#include "train/partition/pipeline.h"
#include "train/plan/simulate.h"

/* The rank and its work. */
struct costing {
    const struct model_config *config;
    const struct pipeline *pipeline; /* of any tensor index */
    const struct layout *layout;
    const struct table *table;                 /* of that layout */
    long batch, length;                        /* of a micro-batch: rows and their tokens */
    int context, context_exchange;             /* context ranks, and model_part's */
    const struct recompute *recompute;         /* [num_layers]; NULL: nothing is computed again */
    double compress_sources;                   /* model_part's */
    bool bf16_activations, documents, padding; /* likewise */
    const struct loss_options *options;
    struct matrices_cost matrices; /* of the data rank with most of each */
};

/* What passes and messages cost. */
struct pass_costs {
    int actions;
    struct action_cost *action; /* [actions of the rank's list]; zero for what comes after passes */
    struct action_cost *layer;  /* [layers + 2] by 1 + layer: backward passes of all micro-batches together */
    struct model_memory memory;
    long pieces, context_pieces; /* elements of scratch for sums over the tensor and the context axis */
};

/* The rank's list in the largest step with the edges of `options`, which a dry run walks. */
const struct actions *costing_list(const struct costing *costing);

/* Adds one cost to another. */
void action_cost_add(struct action_cost *sum, const struct action_cost *cost);
/* Raises what passes and messages cost, cost [count], to that of `other`, where that is more. */
void action_costs_raise(struct action_cost *cost, const struct action_cost *other, int count);

/* Not collective. GDN_INTERNAL without memory, or where a pass fails. */
int pass_costs_create(const struct costing *costing, struct pass_costs *out);
/* The same without running anything: `memory` and `pieces` alone, a hundred times as fast. */
int pass_sizes(const struct costing *costing, struct pass_costs *out);
void pass_costs_free(struct pass_costs *costs);

/* Adds to cost [count of the rank's actions], which has those of struct pass_costs, what comes after passes.
 * Not collective. GDN_INTERNAL where the list is at fault. */
int cost_actions(const struct costing *costing, struct action_cost *cost);

/* The arithmetic of one micro-batch, forward and backward, on one rank that has the whole model. Not
 * collective. GDN_INTERNAL without memory. */
int cost_full(const struct model_config *config, long batch, long length, const struct loss_options *options,
              double *flops);

#endif
