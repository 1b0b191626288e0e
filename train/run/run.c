#include "train/run/run.h"

#include <stdlib.h>

int64_t run_parameters(const struct run *run) {
    int64_t all = 0;
    for (int i = 0; i < run->part.global.rows; i++) all += run->part.global.row[i].count;
    return all;
}

int run_choose(struct run *run) {
    if (!run->config.train.prune.by) return 0;
    const bool *has = pruning_chosen(&run->pruning);
    TRY(mesh_agree(&run->mesh, pipeline_choose(&run->part.pipeline, has, run->mesh.axis[AXIS_PIPELINE].index)));
    TRY(mesh_agree(&run->mesh, executor_renew(run->trainer.executor)));
    return run->evaluation.executor ? evaluation_choose(&run->evaluation, has) : 0;
}

long run_share(const struct run *run) {
    return run_data_share(&run->config, &run->mesh, &run->position);
}

int run_read_batch(struct run *run) {
    return run_data_read(&run->data, &run->config, &run->mesh, &run->position);
}

int run_count_batch(struct run *run) {
    return run_data_count(&run->data, &run->mesh);
}

int64_t run_counted(const struct run *run) {
    return run->data.counted.targets[0] + run->data.counted.targets[1];
}

int64_t run_unpadded(const struct run *run) {
    return run->data.counted.tokens[0] + run->data.counted.tokens[1];
}

struct checkpoint_content run_content(struct run *run) {
    return (struct checkpoint_content){.global = &run->part.global,
                                       .table = run->part.table,
                                       .shards = run->part.shards,
                                       .state = &run->training.saved,
                                       .scales = run->scales.word,
                                       .num_scales = run->scales.count,
                                       .spikes = run->spikes.values,
                                       .spike_values = run->spikes.count};
}

void run_free(struct run *run) {
    evaluation_free(&run->evaluation);
    trainer_free(&run->trainer);
    training_state_free(&run->training);
    memory_plan_free(&run->plan);
    run_data_free(&run->data);
    partition_free(&run->part);
    scales_free(&run->scales);
    spikes_free(&run->spikes);
    pruning_free(&run->pruning);
    checkpoint_close(&run->origin.checkpoint);
    free(run->origin.configured);
    free(run->config_text);
    config_free(&run->config);
}
