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
    const int *activation_sets, *blocks, *narrow_blocks, *weight_sets; /* each [ranks] */
};

/* Before there are schedules with these options, of the largest steps: how many sets ranks may have,
 * weight_sets [ranks], at most r on rank r, as ZB-H1's order needs; from which layer on gradients wait, from
 * [ranks]; and the bytes `most` of 1F1B's largest rank. GDN_INTERNAL. */
int weights_choose(const struct weights_pipeline *of, const struct schedule_options *options,
                   int *weight_sets, int *from, int64_t *most);

/* With the schedules: raises `from` where these need more than 1F1B's, so that `most` suffices. GDN_INTERNAL.
 */
int weights_fit(const struct weights_pipeline *of, const struct weights_buffers *has, int64_t most,
                int *from);

#endif
