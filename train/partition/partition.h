/* What is divided before a run's first step: the model among tensor and pipeline ranks, the batch among data
 * ranks; and this rank's part of both. */
#ifndef GDN_PARTITION_H
#define GDN_PARTITION_H

#include "train/partition/pipeline.h"

struct partition {
    struct table global;         /* of the whole model, as checkpoints have it */
    struct pipeline pipeline;    /* what every pipeline rank has and does */
    const struct layout *layout; /* this rank's, with its table and shards, in `pipeline` */
    const struct table *table;
    const struct shards *shards;
    long share, micro_batch; /* sequences of the largest step on this data rank; of one micro-batch */
};

#endif
