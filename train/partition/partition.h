/* What is divided before a run's first step: the model among the axes that divide it, the batch among those
 * that divide that; and this rank's part of both. */
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
    long share, micro_batch; /* sequences of the largest step on this rank; of one micro-batch */
};

/* For training. Not collective: every rank computes its own. partition_free follows, whatever this returns.
 * GDN_INPUT for a mesh that does not fit model or batch, GDN_INTERNAL. */
int partition_create(const struct config *config, const struct partition_place *place, struct partition *out);
void partition_free(struct partition *part);

#endif
