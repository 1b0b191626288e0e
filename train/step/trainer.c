#include "train/step/trainer.h"

#include "train/config/rows.h"

/* What other ranks are not needed for. */
static int create_model(const struct trainer_setup *s, struct trainer *t) {
    const struct partition *part = s->part;
    struct model_part model_part = {
        .layout = part->layout,
        .tensor = &s->mesh->axis[AXIS_TENSOR],
        .context = &s->mesh->axis[AXIS_CONTEXT],
        .context_exchange = s->config->mesh.context_exchange,
        .activation_sets =
            part->pipeline.activation_sets + s->mesh->axis[AXIS_PIPELINE].index * part->layout->chunks,
        .recompute = s->policy,
        .weight_sets = part->pipeline.weight_sets[s->mesh->axis[AXIS_PIPELINE].index],
        .weights_from = part->pipeline.weights_from[s->mesh->axis[AXIS_PIPELINE].index],
        .compress_sources = s->config->train.compress_sources,
        .bf16_activations = s->config->train.activations == ACTIVATIONS_BF16,
        .documents = s->config->data.documents == DOCUMENTS_MASK,
        .padding = s->config->data.packing == PACKING_BEST_FIT,
    };
    const long rows = config_rows(s->config, part->micro_batch), length = config_row_length(s->config);
    TRY(model_size_weight_sets(&s->config->model, part->table, &model_part, rows, length));
    return model_create(&s->config->model, part->table, s->state, s->ops, &model_part, rows, length, true,
                        &t->model);
}

/* What sums gradients and uses them. Collective. */
static int create_optimizer(const struct trainer_setup *s, struct trainer *t) {
    TRY(sync_create(s->mesh, s->part->table, s->part->shards, &t->sync, &t->sync_bytes));
    t->optimizer = (struct optimizer){
        .ops = s->ops,
        .model = &s->config->model,
        .train = &s->config->train,
        .table = s->part->table,
        .shards = s->part->shards,
        .mesh = s->mesh,
        .state = s->state,
    };
    t->nan_trace = (struct nan_trace){
        .ops = s->ops,
        .config = &s->config->model,
        .layout = s->part->layout,
        .table = s->part->table,
        .state = s->state,
        .mesh = s->mesh,
        .compressed = s->config->train.compress_sources > 0,
    };
    TRY(nan_trace_reserve(&t->nan_trace));
    return optimizer_reserve(&t->optimizer);
}

static int create_executor(const struct trainer_setup *s, struct trainer *t) {
    const struct execution execution = {
        .mesh = s->mesh,
        .config = &s->config->model,
        .pipeline = &s->part->pipeline,
        .ops = s->ops,
        .model = t->model,
        .batch = config_rows(s->config, s->part->micro_batch),
        .length = config_row_length(s->config),
        .state = s->state,
        .sync = t->sync,
        .optimizer = &t->optimizer,
        .graphs = s->config->train.graphs,
    };
    return executor_create(&execution, &t->executor);
}

int trainer_create(const struct trainer_setup *setup, struct trainer *out) {
    *out = (struct trainer){.model = NULL};
    TRY(mesh_agree(setup->mesh, create_model(setup, out)));
    TRY(mesh_agree(setup->mesh, create_optimizer(setup, out)));
    return mesh_agree(setup->mesh, create_executor(setup, out));
}

void trainer_free(struct trainer *trainer) {
    executor_free(trainer->executor);
    optimizer_free(&trainer->optimizer);
    sync_free(trainer->sync);
    model_free(trainer->model);
    nan_trace_free(&trainer->nan_trace);
}
