#include "train/partition/partition.h"

#include "kernels/base/status.h"
#include "model/table/params.h"
#include "train/partition/divide.h"

int partition_create(const struct config *config, const struct partition_place *place,
                     struct partition *out) {
    const int rank = place->pipeline_index;
    *out = (struct partition){.share = 0};
    TRY(batch_divide(&config->train, place->batch_parts, &out->share, &out->micro_batch));
    TRY(params_create(&config->model, NULL, &out->global));
    optimizer_treat(&config->train, &out->global);
    TRY(groups_uses(&config->train, &out->global, &out->groups));
    TRY(pipeline_create(config, place, (int)(out->share / out->micro_batch), true, &out->pipeline));
    pipeline_keep(&out->pipeline, rank);
    out->layout = &out->pipeline.layout[rank];
    out->table = &out->pipeline.table[rank];
    out->shards = &out->pipeline.shards[rank];
    return 0;
}

void partition_free(struct partition *part) {
    pipeline_free(&part->pipeline);
    params_free(&part->global);
}
