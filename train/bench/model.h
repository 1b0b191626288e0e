/* A model with its training state on one process, for benchmarks: steps on random tokens. */
#ifndef GDN_BENCH_MODEL_H
#define GDN_BENCH_MODEL_H

#include <stdint.h>

#include "dist/mesh/mesh.h"
#include "dist/layout/shard.h"
#include "dist/layout/table.h"
#include "model/model.h"
#include "train/config/config.h"
#include "train/optimizer/loss_scale.h"
#include "train/optimizer/optimizer.h"
#include "train/memory/state.h"

struct bench_model {
    const struct config *config;
    struct ops ops; /* the backend's table, in which a benchmark may replace operations */
    struct layout layout;
    struct mesh mesh; /* of this process alone */
    struct table table;
    struct shards shards;
    struct state_memory memory; /* what `state` points into */
    struct state state;
    struct model *model;
    struct optimizer optimizer;
    struct loss_scale loss_scale;
    int32_t *rows;    /* [batch_size, sequence_length + 1] */
    long micro_batch; /* sequences of a micro-batch */
};

/* `recompute` [num_layers] as in model_part, NULL: nothing is computed again. Points into itself: do not
 * copy. After a failure (GDN_INTERNAL without memory) there is nothing to free. */
int bench_model_create(const struct ops *ops, const struct config *config, const struct recompute *recompute,
                       struct bench_model *out);
void bench_model_free(struct bench_model *b);

/* One optimiser step, to its end on the device: forward, backward, clipping, update. */
int bench_model_step(struct bench_model *b);

#endif
