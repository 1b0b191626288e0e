#include "train/plan/rank_plan.h"

#include <stdlib.h>

#include "dist/sync/sync.h"
#include "model/params/exits.h"
#include "model/table/params.h"
#include "train/config/rows.h"
#include "train/deltas/delta_store.h"
#include "train/optimizer/groups.h"
#include "train/optimizer/optimizer.h"
#include "train/memory/saving.h"
#include "train/memory/state.h"

struct loss_options rank_plan_options(const struct config *config) {
    const struct delta_config *delta = &config->model.delta;
    bool on = delta->regularizer != REGULARIZER_NONE;
    struct loss_options options = {
        .target_weight = 1,
        .token_weight = 1,
        .sparsity_weight = on,
        .entropy_weight = on,
        .z_weight = config->train.z_loss,
        .l1_weight = delta->l1_weight,
        .measure = on,
    };
    /* With all exits that a step has at most: a late one of gradual, any one of rotate. */
    exit_weights(&config->model.exit, config->train.steps, config->train.steps, options.exit_weight);
    return options;
}

/* What the optimiser does with whole matrices, which are dealt to data and tensor ranks. */
static int plan_matrices(struct rank_plan *plan) {
    const struct rank_work *work = plan->work;
    plan->matrices = calloc((size_t)work->size[AXIS_COPIES], sizeof *plan->matrices);
    const struct deal_ranks ranks = {work->size[AXIS_COPIES], work->size[AXIS_TENSOR],
                                     plan->layout.index[AXIS_TENSOR]};
    int status = plan->matrices ? matrices_plan(&work->config->train, &plan->table, &plan->shards, &ranks,
                                                plan->matrices)
                                : gdn_fail(GDN_INTERNAL, "out of memory for the plan of an optimiser");
    for (int rank = 0; rank < work->size[AXIS_COPIES] && !status; rank++)
        matrices_raise(&plan->costing.matrices, &plan->matrices[rank]);
    if (status) rank_plan_free(plan);
    return status;
}

int rank_plan_create(const struct rank_work *work, int tensor, int pipeline, struct rank_plan *out) {
    const struct config *config = work->config;
    const struct pipeline *p = work->pipeline;
    *out =
        (struct rank_plan){.work = work, .layout = p->layout[pipeline], .options = rank_plan_options(config)};
    out->layout.index[AXIS_TENSOR] = tensor;
    TRY(params_create(&config->model, &out->layout, &out->table));
    optimizer_treat(&config->train, &out->table);
    int status = shards_create(&out->table, work->size[AXIS_COPIES], 0, config->mesh.sum_group,
                               config->mesh.bucket, &out->shards);
    if (status) params_free(&out->table);
    out->costing = (struct costing){
        .config = &config->model,
        .pipeline = p,
        .layout = &out->layout,
        .table = &out->table,
        .batch = config_rows(config, work->micro_batch),
        .length = config_row_length(config),
        .context = config->mesh.size[AXIS_CONTEXT],
        .context_exchange = config->mesh.context_exchange,
        .compress_sources = config->train.compress_sources,
        .bf16_activations = config->train.activations == ACTIVATIONS_BF16,
        .documents = config->data.documents == DOCUMENTS_MASK,
        .padding = config->data.packing == PACKING_BEST_FIT,
        .options = &out->options,
    };
    if (!status) status = plan_matrices(out);
    return status;
}

void rank_plan_free(struct rank_plan *plan) {
    free(plan->matrices);
    shards_free(&plan->shards);
    params_free(&plan->table);
}

int rank_plan_costs(const struct rank_plan *plan, const struct recompute *policy, struct pass_costs *out) {
    struct costing costing = plan->costing;
    costing.recompute = policy;
    return pass_costs_create(&costing, out);
}

int rank_plan_sizes(const struct rank_plan *plan, const struct recompute *policy, struct pass_costs *out) {
    struct costing costing = plan->costing;
    costing.recompute = policy;
    return pass_sizes(&costing, out);
}

int64_t batch_bytes(const struct config *config, long share) {
    const bool cut = config->mesh.size[AXIS_CONTEXT] > 1;
    int64_t tokens = share * (config->train.sequence_length + 1L);
    if (cut) tokens += config_rows(config, share) * (config_row_length(config) + 1);
    return tokens * (int64_t)sizeof(int32_t);
}

static struct memory state_memory(const struct rank_plan *plan) {
    struct state_memory state;
    state_plan(&state, NULL, config_weight_copy(plan->work->config), &plan->table, STATE_TRAINING,
               &plan->shards);
    return (struct memory){{
        [MEMORY_WEIGHTS] = state_planned_weights(&state),
        [MEMORY_GRADIENTS] = (int64_t)state.gradients.used,
        [MEMORY_OPTIMIZER] = (int64_t)state.optimizer.used,
    }};
}

int rank_plan_memory(const struct rank_plan *plan, const struct pass_costs *passes, struct memory *out) {
    const struct rank_work *work = plan->work;
    const struct config *config = work->config;
    const struct execution execution = {
        .config = &config->model,
        .pipeline = work->pipeline,
        .batch = config_rows(config, work->micro_batch),
        .length = config_row_length(config),
    };
    struct axis tensor =
        axis_planned("tensor", plan->layout.size[AXIS_TENSOR], plan->layout.index[AXIS_TENSOR]);
    struct axis context = axis_planned("context", config->mesh.size[AXIS_CONTEXT], 0);
    const struct delta_place store = {
        .config = config,
        .layout = &plan->layout,
        .edges = &work->pipeline->edges,
        .batch = work->micro_batch,
    };
    tensor.pieces_count = passes->pieces;
    context.pieces_count = passes->context_pieces;
    *out = state_memory(plan);
    out->bytes[MEMORY_ACTIVATIONS] = passes->memory.activations;
    out->bytes[MEMORY_SOURCES] = passes->memory.sources;
    out->bytes[MEMORY_COMMUNICATION] =
        sync_formula_scratch(&plan->table, &plan->shards, work->size[AXIS_COPIES], work->size[AXIS_TENSOR]) +
        executor_planned(&execution, plan->layout.index[AXIS_PIPELINE]);
    out->bytes[MEMORY_WORKSPACE] =
        passes->memory.workspace +
        optimizer_planned(&config->train, &plan->table, &plan->shards, work->size[AXIS_COPIES]) +
        batch_bytes(config, work->share) + delta_store_memory(&store, 0, 0);
    if (!work->without_copy)
        out->bytes[MEMORY_CHECKPOINT] = saver_planned(config, &plan->table, &plan->shards);
    if (work->evaluation)
        TRY(evaluation_plan(work->evaluation, config, &plan->layout, &plan->table, &tensor, &context, out));
    out->bytes[MEMORY_COMMUNICATION] += (tensor.pieces_count + context.pieces_count) * (int64_t)sizeof(real);
    return 0;
}
