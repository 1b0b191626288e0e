/* One rank's part of a run, planned by whoever likes, on a mesh that need not exist: its table and shards,
 * what its passes cost, and what it reserves, which comes from the very calls that reserve it. */
#ifndef GDN_RANK_PLAN_H
#define GDN_RANK_PLAN_H

#include "train/memory/memory.h"
#include "train/partition/pipeline.h"
#include "train/plan/cost.h"
#include "train/evaluation/evaluation.h"

/* What all ranks have in common. */
struct rank_work {
    const struct config *config;
    const struct pipeline *pipeline;     /* of any tensor index */
    const struct evaluation *evaluation; /* as described (evaluation/evaluation.h), or NULL: none */
    int size[AXES];                      /* ranks of each axis, copies as one (axes_joined) */
    long share, micro_batch;             /* sequences of a step on a rank, and of a micro-batch */
    bool without_copy; /* checkpoint.asynchronous auto has come to be false (train/memory/saving.h) */
};

struct rank_plan {
    const struct rank_work *work;
    struct layout layout;
    struct table table;
    struct shards shards; /* of copy 0; in number and length the same for all */
    struct loss_options options;
    struct matrices_cost *matrices; /* [copies] of each */
    struct costing costing;
};

/* The rank at a tensor and pipeline index, of any copy. `work` outlives it. Not collective.
 * GDN_INTERNAL, with nothing to free. */
int rank_plan_create(const struct rank_work *work, int tensor, int pipeline, struct rank_plan *out);
void rank_plan_free(struct rank_plan *plan);

/* Its passes, with recomputation `policy` [num_layers]. GDN_INTERNAL. */
int rank_plan_costs(const struct rank_plan *plan, const struct recompute *policy, struct pass_costs *out);

/* Of these what rank_plan_memory needs, with nothing to free and a hundred times as fast. GDN_INTERNAL. */
int rank_plan_sizes(const struct rank_plan *plan, const struct recompute *policy, struct pass_costs *out);

/* All that it reserves with such passes, for copy 0, which stores differences too where that is wanted.
 * GDN_INTERNAL. */
int rank_plan_memory(const struct rank_plan *plan, const struct pass_costs *passes, struct memory *out);

/* What a training step computes with all distances introduced and the regulariser, if any, at work. */
struct loss_options rank_plan_options(const struct config *config);

/* Bytes of the batch's tokens on a rank: its share of sequences, and its pieces of them. */
int64_t batch_bytes(const struct config *config, long share);

#endif
