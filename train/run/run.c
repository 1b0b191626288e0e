#include "train/run/run.h"

#include "model/table/params.h"
#include "train/run/backend.h"
#include "train/partition/divide.h"
#include "train/run/ranks.h"

#include <stdlib.h>

static int prepare(struct run *run) {
    const struct mesh *mesh = &run->mesh;
    TRY(batch_divide(&run->config.train, mesh->data.size, &run->part.share, &run->part.micro_batch));
    TRY(params_create(&run->config.model, NULL, &run->part.global));
    TRY(spikes_create(&run->config.spikes, &run->spikes));
    TRY(pipeline_create(&run->config, mesh->data.size, mesh->data.index, mesh->tensor.index,
                        (int)(run->part.share / run->part.micro_batch), true, &run->part.pipeline));
    pipeline_keep(&run->part.pipeline, mesh->pipeline.index);
    run->part.layout = &run->part.pipeline.layout[mesh->pipeline.index];
    run->part.table = &run->part.pipeline.table[mesh->pipeline.index];
    run->part.shards = &run->part.pipeline.shards[mesh->pipeline.index];
    return 0;
}

int run_prepare(struct run *run, FILE *log) {
    const struct mesh_config *axes = &run->config.mesh;
    TRY(ranks_arrange(&run->mesh, axes->data, axes->tensor, axes->pipeline));
    TRY(ranks_share_cores(&run->mesh, log));
    TRY(backend_choose(&run->config, &run->mesh, &run->ops));
    TRY(mesh_use(&run->mesh, run->ops, (enum mesh_transport)run->config.mesh.transport,
                 run->config.watchdog.step));
    run->loss_scale = loss_scale_start(run->ops->precision);
    TRY(mesh_agree(&run->mesh, scales_create(run->ops, &run->config.model, &run->scales)));
    return mesh_agree(&run->mesh, prepare(run));
}

static int reserve(struct run *run) {
    const struct device *device = run->ops->device;
    TRY(state_reserve(&run->training.memory, device, run->part.table, STATE_TRAINING,
                      run->part.shards->moments, &run->training.state));
    run->training.saved = run->training.state;
    if (device->host) return 0;
    return state_reserve(&run->training.mirror, NULL, run->part.table, STATE_SAVED, run->part.shards->moments,
                         &run->training.saved);
}

int run_reserve(struct run *run) {
    TRY(run_plan(run));
    return mesh_agree(&run->mesh, reserve(run));
}

/* --------------------------------------------------------------------------------------- what computes */

/* What other ranks are not needed for. */
static int create_model(struct run *run) {
    const struct config *config = &run->config;
    const struct model_part part = {
        .layout = run->part.layout,
        .tensor = &run->mesh.tensor,
        .activation_sets =
            run->part.pipeline.activation_sets + run->mesh.pipeline.index * run->part.layout->chunks,
        .recompute = run->plan.policy,
        .compress_sources = config->train.compress_sources,
    };
    return model_create(&config->model, run->part.table, &run->training.state, run->ops, &part,
                        run->part.micro_batch, config->train.sequence_length, true, &run->trainer.model);
}

/* What sums gradients and uses them. Collective. */
static int create_optimizer(struct run *run) {
    TRY(sync_create(&run->mesh, run->part.table, run->part.shards, &run->trainer.sync,
                    &run->trainer.sync_bytes));
    run->trainer.optimizer = (struct optimizer){
        .ops = run->ops,
        .model = &run->config.model,
        .train = &run->config.train,
        .table = run->part.table,
        .shards = run->part.shards,
        .mesh = &run->mesh,
        .state = &run->training.state,
    };
    run->trainer.nan_trace = (struct nan_trace){
        .ops = run->ops,
        .config = &run->config.model,
        .layout = run->part.layout,
        .table = run->part.table,
        .state = &run->training.state,
        .mesh = &run->mesh,
        .compressed = run->config.train.compress_sources > 0,
    };
    TRY(nan_trace_reserve(&run->trainer.nan_trace));
    return optimizer_reserve(&run->trainer.optimizer);
}

int run_create(struct run *run) {
    TRY(mesh_agree(&run->mesh, create_model(run)));
    TRY(mesh_agree(&run->mesh, create_optimizer(run)));
    const struct execution execution = {
        .mesh = &run->mesh,
        .config = &run->config.model,
        .pipeline = &run->part.pipeline,
        .ops = run->ops,
        .model = run->trainer.model,
        .batch = run->part.micro_batch,
        .length = run->config.train.sequence_length,
        .state = &run->training.state,
        .sync = run->trainer.sync,
        .optimizer = &run->trainer.optimizer,
        .graphs = run->config.train.graphs,
    };
    TRY(mesh_agree(&run->mesh, executor_create(&execution, &run->trainer.executor)));
    if (!run->data.validation.sets) return 0;
    return evaluation_create(&run->mesh, &run->config, run->part.table, &run->training.state, run->ops,
                             &run->data.validation, &run->evaluation);
}

int64_t run_parameters(const struct run *run) {
    int64_t all = 0;
    for (int i = 0; i < run->part.global.rows; i++) all += run->part.global.row[i].count;
    return all;
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

int run_snapshot(struct run *run) {
    return run->ops->device->host ? 0 : state_copy(&run->training.mirror, &run->training.memory);
}

void run_free(struct run *run) {
    evaluation_free(&run->evaluation);
    executor_free(run->trainer.executor);
    optimizer_free(&run->trainer.optimizer);
    sync_free(run->trainer.sync);
    model_free(run->trainer.model);
    sampler_close(run->data.sampler);
    validation_close(&run->data.validation);
    pipeline_free(&run->part.pipeline);
    params_free(&run->part.global);
    state_free(&run->training.memory);
    state_free(&run->training.mirror);
    scales_free(&run->scales);
    spikes_free(&run->spikes);
    nan_trace_free(&run->trainer.nan_trace);
    free(run->plan.policy);
    free(run->data.rows);
    free(run->config_text);
    free(run->origin.configured);
    free(run->data.text);
    config_free(&run->config);
}
