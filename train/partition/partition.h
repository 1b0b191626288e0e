/* What is divided before a run's first step: the model among tensor and pipeline ranks, the batch among data
 * ranks; and this rank's part of both. */
#ifndef GDN_PARTITION_H
#define GDN_PARTITION_H

#include "train/optimizer/groups.h"
#include "train/partition/pipeline.h"

struct partition {
    struct table global;         /* of the whole model, as checkpoints have it */
    struct group_uses groups;    /* what train.groups come to in it */
    struct pipeline pipeline;    /* what every pipeline rank has and does */
    const struct layout *layout; /* this rank's, with its table and shards, in `pipeline` */
    const struct table *table;
    const struct shards *shards;
    long share, micro_batch; /* sequences of the largest step on this data rank; of one micro-batch */
};

/* A rank's place on a mesh with `data` data ranks. */
struct partition_place {
    int data, data_index, tensor_index, pipeline_index;
};

/* For training. Not collective: every rank computes its own. partition_free follows, whatever this returns.
 * GDN_INPUT for a mesh that does not fit model or batch, GDN_INTERNAL. */
int partition_create(const struct config *config, const struct partition_place *place, struct partition *out);
void partition_free(struct partition *part);

#endif
