/* Of which layers and of how many micro-batches gradients of weights wait (mesh.schedule zero_bubble;
 * base/weight_gradients.h of model/): of as many of a rank's upper layers as there is memory for, until its
 * passes need what those of 1F1B need on the rank where that is most. What counts is the training state and
 * what micro-batches hold: activations, outputs of nodes, scratch, weight sets, and blocks for messages.
 * Where memory decides what is computed again (recompute auto), activations count as without. The answer is
 * the same for all tensor indices and copies. */
#ifndef GDN_WEIGHTS_H
#define GDN_WEIGHTS_H

#include "dist/layout/shard.h"
#include "dist/schedule/schedule.h"
#include "train/config/config.h"

/* A pipeline. */
struct weights_pipeline {
    const struct config *config;
    int ranks, micro_batches; /* of the largest steps */
    long batch;               /* sequences of a micro-batch */
    const struct edges *edges;
    const struct edge_set *active; /* all distances' */
    const struct layout *layout;   /* [ranks] */
    const struct shards *shards;   /* [ranks] */
    const struct route_widths *widths;
};

/* What its ranks have. */
struct weights_buffers {
    const int *activation_sets, *blocks, *narrow_blocks, *weight_sets; /* each [ranks]; of a V the first [ranks, 2] */
};

/* What a V's schedules may make use of, each [ranks]. */
struct v_bounds {
    int *activation_sets, *weight_sets;
};

/* For zero_bubble_v: 2·ranks activation sets on each rank, of half of 1F1B's layers each, and a weight set; or, with
 * mesh.schedule_memory, as many weight sets as there is room for, up to 2·ranks, and where there is none for one
 * on each rank, fewer activation sets. `options`: of the largest steps, with their times. GDN_INPUT where there
 * is not room for the least; GDN_INTERNAL. */
int weights_bound_v(const struct weights_pipeline *of, const struct schedule_options *options,
                    const struct v_bounds *bounds);
/* With the schedules: whether mesh.schedule_memory suffices; where not, `weight_sets` has one less on each rank that
 * is over. GDN_INTERNAL. */
int weights_fit_v(const struct weights_pipeline *of, const struct weights_buffers *has, int *weight_sets,
                  bool *fits);

/* Before there are schedules with these options, of the largest steps: how many sets ranks may have,
 * weight_sets [ranks], at most r on rank r, as ZB-H1's order needs, with mesh.schedule_memory r + 1; from which layer on gradients wait, from
 * [ranks]; and the bytes `most` of 1F1B's largest rank, or mesh.schedule_memory. GDN_INTERNAL. */
int weights_choose(const struct weights_pipeline *of, const struct schedule_options *options,
                   int *weight_sets, int *from, int64_t *most);

/* With the schedules: raises `from` where these need more than 1F1B's, so that `most` suffices. GDN_INTERNAL.
 */
int weights_fit(const struct weights_pipeline *of, const struct weights_buffers *has, int64_t most,
                int *from);

#endif
