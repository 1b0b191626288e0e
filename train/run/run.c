#include "train/run/run.h"

#include "model/params/params.h"
#include "train/run/backend.h"
#include "train/partition/divide.h"
#include "train/run/ranks.h"

#include <stdlib.h>

static int prepare(struct run *run) {
    const struct mesh *mesh = &run->mesh;
    TRY(batch_divide(&run->config.train, mesh->data.size, &run->share, &run->micro_batch));
    TRY(params_create(&run->config.model, NULL, &run->global));
    TRY(spikes_create(&run->config.spikes, &run->spikes));
    TRY(pipeline_create(&run->config, mesh->data.size, mesh->data.index, mesh->tensor.index,
                        (int)(run->share / run->micro_batch), true, &run->pipeline));
    pipeline_keep(&run->pipeline, mesh->pipeline.index);
    run->layout = &run->pipeline.layout[mesh->pipeline.index];
    run->table = &run->pipeline.table[mesh->pipeline.index];
    run->shards = &run->pipeline.shards[mesh->pipeline.index];
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
    TRY(state_reserve(&run->memory, device, run->table, STATE_TRAINING, run->shards->moments, &run->state));
    run->saved = run->state;
    if (device->host) return 0;
    return state_reserve(&run->mirror, NULL, run->table, STATE_SAVED, run->shards->moments, &run->saved);
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
        .layout = run->layout,
        .tensor = &run->mesh.tensor,
        .activation_sets = run->pipeline.activation_sets + run->mesh.pipeline.index * run->layout->chunks,
        .recompute = run->policy,
        .compress_sources = config->train.compress_sources,
    };
    return model_create(&config->model, run->table, &run->state, run->ops, &part, run->micro_batch,
                        config->train.sequence_length, true, &run->model);
}

/* What sums gradients and uses them. Collective. */
static int create_optimizer(struct run *run) {
    TRY(sync_create(&run->mesh, run->table, run->shards, &run->sync, &run->sync_bytes));
    run->optimizer = (struct optimizer){
        .ops = run->ops,
        .model = &run->config.model,
        .train = &run->config.train,
        .table = run->table,
        .shards = run->shards,
        .mesh = &run->mesh,
        .state = &run->state,
    };
    run->nan_trace = (struct nan_trace){
        .ops = run->ops,
        .config = &run->config.model,
        .layout = run->layout,
        .table = run->table,
        .state = &run->state,
        .mesh = &run->mesh,
        .compressed = run->config.train.compress_sources > 0,
    };
    TRY(nan_trace_reserve(&run->nan_trace));
    return optimizer_reserve(&run->optimizer);
}

int run_create(struct run *run) {
    TRY(mesh_agree(&run->mesh, create_model(run)));
    TRY(mesh_agree(&run->mesh, create_optimizer(run)));
    const struct execution execution = {
        .mesh = &run->mesh,
        .config = &run->config.model,
        .pipeline = &run->pipeline,
        .ops = run->ops,
        .model = run->model,
        .batch = run->micro_batch,
        .length = run->config.train.sequence_length,
        .state = &run->state,
        .sync = run->sync,
        .optimizer = &run->optimizer,
        .graphs = run->config.train.graphs,
    };
    TRY(mesh_agree(&run->mesh, executor_create(&execution, &run->executor)));
    if (!run->validation.sets) return 0;
    return evaluation_create(&run->mesh, &run->config, run->table, &run->state, run->ops, &run->validation,
                             &run->evaluation);
}

int64_t run_parameters(const struct run *run) {
    int64_t all = 0;
    for (int i = 0; i < run->global.rows; i++) all += run->global.row[i].count;
    return all;
}

struct checkpoint_content run_content(struct run *run) {
    return (struct checkpoint_content){.global = &run->global,
                                       .table = run->table,
                                       .shards = run->shards,
                                       .state = &run->saved,
                                       .scales = run->scales.word,
                                       .num_scales = run->scales.count,
                                       .spikes = run->spikes.values,
                                       .spike_values = run->spikes.count};
}

int run_snapshot(struct run *run) {
    return run->ops->device->host ? 0 : state_copy(&run->mirror, &run->memory);
}

void run_free(struct run *run) {
    evaluation_free(&run->evaluation);
    executor_free(run->executor);
    optimizer_free(&run->optimizer);
    sync_free(run->sync);
    model_free(run->model);
    sampler_close(run->data);
    validation_close(&run->validation);
    pipeline_free(&run->pipeline);
    params_free(&run->global);
    state_free(&run->memory);
    state_free(&run->mirror);
    scales_free(&run->scales);
    spikes_free(&run->spikes);
    nan_trace_free(&run->nan_trace);
    free(run->policy);
    free(run->rows);
    free(run->config_text);
    free(run->configured);
    free(run->data_text);
    config_free(&run->config);
}
