/* The plan of all ranks: what each holds, computes and sends, and the step that they make together. */
#include "train/plan/plan.h"

#include <limits.h>
#include <stdlib.h>

#include "dist/sync/sync.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/table/params.h"
#include "train/config/batch.h"
#include "train/step/execute.h"
#include "train/plan/fit.h"
#include "train/plan/prepare.h"
#include "train/optimizer/optimizer.h"
#include "train/plan/cost.h"
#include "train/memory/saving.h"

/* ------------------------------------------------------------------------------------------- one rank */

/* The part of the optimiser's memory that the formula counts: of each moment a copy's share of the large
 * tensors and all of the small ones (with two of floats 8 bytes a parameter). */
static int64_t optimizer_formula(const struct table *table, int copies) {
    int64_t elements = 0;
    for (int m = 0; m < MOMENTS; m++) {
        int64_t large = 0, small = 0;
        for (int i = 0; i < table->rows; i++) {
            const struct row *row = &table->row[i];
            bool sharded = row->zone == ZONE_LARGE || row->zone == ZONE_SHARED_LARGE;
            if (m < row->treatment.moments->count) *(sharded ? &large : &small) += row->count;
        }
        elements += (large + copies - 1) / copies + small;
    }
    return elements * (int64_t)sizeof(real);
}

/* ---------------------------------------------------------------------------------------- pipeline ranks */

static struct plan_rank *rank_at(const struct plan *plan, int copy, int tensor, int pipeline) {
    const int index[AXES] = {[AXIS_COPIES] = copy, [AXIS_TENSOR] = tensor, [AXIS_PIPELINE] = pipeline};
    return &plan->rank[axes_rank_joined(plan->size, index)];
}

static int64_t copy_bytes(const struct plan *plan, const struct loss_options *options,
                          const struct shards *shards, int copy) {
    const int copies = plan->work.size[AXIS_COPIES];
    int64_t bytes =
        axis_formula_sum_doubles(copies, step_sums(options, plan->config->model.exit.num_layers)) +
        optimizer_formula_norm(shards, copies);
    for (int b = 0; b < shards->buckets; b++) bytes += sync_formula_bucket(&shards->bucket[b], copies, copy);
    return bytes;
}

/* The figures of all copies of one tensor and pipeline index. */
static void fill_ranks(struct plan *plan, const struct rank_plan *part, const struct memory *memory,
                       const struct action_cost *cost) {
    int pipeline = part->layout.index[AXIS_PIPELINE], copies = plan->work.size[AXIS_COPIES];
    struct plan_rank rank = {
        .memory = *memory,
        .optimizer_formula = optimizer_formula(&part->table, copies),
        .parameters = plan_table_parameters(&part->table),
    };
    for (int i = 0; i < plan->pipeline.schedule.rank[pipeline].count; i++) {
        rank.flops += cost[i].flops;
        for (int axis = 0; axis < AXES; axis++) rank.bytes[axis] += cost[i].bytes[axis];
    }
    for (int copy = 0; copy < copies; copy++) {
        const struct matrices_cost *own = &part->matrices[copy], *most = &part->costing.matrices;
        struct plan_rank *out = rank_at(plan, copy, part->layout.index[AXIS_TENSOR], pipeline);
        *out = rank;
        out->flops += own->flops - most->flops;
        out->bytes[AXIS_COPIES] = copy_bytes(plan, &part->options, &part->shards, copy) + own->copy_bytes;
        out->bytes[AXIS_TENSOR] += own->tensor_bytes - most->tensor_bytes;
    }
}

/* On a synchronous machine: here, as the simulation and the traces both go by what is hidden. */
static void hide_nothing(struct action_cost *cost, int actions) {
    for (int i = 0; i < actions; i++)
        for (int axis = 0; axis < AXES; axis++) cost[i].hidden[axis] = (struct hidden_cost){0};
}

/* Costs of one tensor and pipeline index; the slowest of the tensor indices are raised to its passes', and
 * have the rest once all have been there. */
static int plan_costs(struct plan *plan, const struct rank_plan *part, struct pass_costs *passes) {
    int tensor = part->layout.index[AXIS_TENSOR], pipeline = part->layout.index[AXIS_PIPELINE];
    struct action_cost *cost = passes->action;
    struct memory memory;
    plan->cost[pipeline * plan->size[AXIS_TENSOR] + tensor] = cost; /* the plan's from here on */
    passes->action = NULL;
    struct costing slowest = part->costing;
    if (plan->machine.synchronous) hide_nothing(cost, passes->actions);
    action_costs_raise(plan->slowest[pipeline], cost, passes->actions);
    if (!tensor) plan->matrices = (struct matrices_cost){0};
    matrices_raise(&plan->matrices, &slowest.matrices);
    slowest.matrices = plan->matrices;
    TRY(rank_plan_memory(part, passes, &memory));
    TRY(cost_actions(&part->costing, cost));
    fill_ranks(plan, part, &memory, cost);
    return tensor < plan->size[AXIS_TENSOR] - 1 ? 0 : cost_actions(&slowest, plan->slowest[pipeline]);
}

static int plan_passes(struct plan *plan, const struct rank_plan *part) {
    struct pass_costs passes;
    TRY(rank_plan_costs(part, plan->policy, &passes));
    int status = plan_costs(plan, part, &passes);
    pass_costs_free(&passes);
    return status;
}

static int plan_rank(struct plan *plan, int tensor, int pipeline) {
    struct rank_plan part;
    TRY(rank_plan_create(&plan->work, tensor, pipeline, &part));
    int status = plan_passes(plan, &part);
    rank_plan_free(&part);
    return status;
}

static int plan_pipeline_rank(struct plan *plan, int pipeline) {
    for (int tensor = 0; tensor < plan->size[AXIS_TENSOR]; tensor++) TRY(plan_rank(plan, tensor, pipeline));
    return 0;
}

/* --------------------------------------------------------------------------------------------- all of it */

static int count_parameters(struct plan *plan) {
    struct table table;
    TRY(params_create(&plan->config->model, NULL, &table));
    plan->parameters = plan_table_parameters(&table);
    optimizer_treat(&plan->config->train, &table);
    int status = rule_counts_of(&plan->config->model, &table, &plan->rules);
    if (!status) status = groups_uses(&plan->config->train, &table, &plan->groups);
    params_free(&table);
    return status;
}

static int reserve(struct plan *plan) {
    const struct schedule *schedule = &plan->pipeline.schedule;
    size_t pipelines = (size_t)schedule->ranks, columns = pipelines * (size_t)plan->size[AXIS_TENSOR];
    bool all = (plan->ratio = calloc(pipelines, sizeof *plan->ratio)) &&
               (plan->rank = calloc((size_t)plan->ranks, sizeof *plan->rank)) &&
               (plan->cost = calloc(columns, sizeof *plan->cost)) &&
               (plan->slowest = calloc(pipelines, sizeof *plan->slowest));
    for (size_t r = 0; all && r < pipelines; r++)
        all = (plan->slowest[r] = calloc((size_t)schedule->rank[r].count + 1, sizeof **plan->slowest));
    return all ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a plan of %ld ranks", plan->ranks);
}

static int choose_recomputation(struct plan *plan) {
    const struct config *config = plan->config;
    recompute_fixed(&config->train, config->model.num_layers, plan->policy);
    if (!recompute_chosen(&config->train)) return 0;
    if (!plan->available.bytes)
        return gdn_fail(GDN_INPUT,
                        "train.recompute or recompute_delta is auto, but train.memory is 0: a plan "
                        "knows of no machine; give the GiB that a rank may use as train.memory");
    for (int r = 0; r < config->mesh.size[AXIS_PIPELINE]; r++)
        TRY(recompute_auto(&plan->work, r, plan->available.bytes, plan->policy, &plan->ratio[r]));
    return 0;
}

/* What is computed again, and what that leaves the rank that needs most. */
static int plan_policies(struct plan *plan, struct plan_max *max) {
    *max = (struct plan_max){0};
    TRY(choose_recomputation(plan));
    return plan->available.bytes ? plan_find_max(plan, INT64_MAX, max) : 0;
}

/* checkpoint.asynchronous auto: without the copy where that does not fit on all ranks, as a run of so much
 * memory decides (train/run/memory.c). */
static int choose_saving(struct plan *plan, struct plan_max *max) {
    if (plan->config->checkpoint.asynchronous != SAVE_AUTO || !saver_has_intervals(plan->config)) return 0;
    if (memory_fits(&plan->available, &max->memory)) return 0;
    plan->foreground = saver_no_memory;
    plan->work.without_copy = true;
    return plan_policies(plan, max);
}

/* Before what a step costs, which takes far longer to find. */
static int validate_memory(struct plan *plan) {
    struct plan_max max;
    char who[40];
    TRY(plan_policies(plan, &max));
    TRY(choose_saving(plan, &max));
    snprintf(who, sizeof who, "rank %ld", max.rank);
    const struct fit fit = {plan->config, plan->ranks, &plan->available};
    return fit_verify(&fit, who, &max.memory);
}

static int full_step(struct plan *plan) {
    const struct config *config = plan->config;
    struct loss_options options = rank_plan_options(config);
    double flops;
    TRY(cost_full(&config->model, plan->micro_batch, config->train.sequence_length, &options, &flops));
    plan->flops = flops * plan->micro_batches * plan->batch_parts;
    plan->ideal = plan->flops / (double)plan->ranks / plan->machine.flops;
    return 0;
}

static int build(struct plan *plan, long ranks) {
    const struct config *config = plan->config;
    TRY(plan_prepare(plan, ranks));
    if (plan->machine.node) plan_machine_place(&plan->machine, plan->size, config->mesh.sum_group);
    TRY(count_parameters(plan));
    TRY(reserve(plan));
    TRY(validate_memory(plan));
    for (int r = 0; r < config->mesh.size[AXIS_PIPELINE]; r++) TRY(plan_pipeline_rank(plan, r));
    TRY(full_step(plan));
    return simulate(&plan->pipeline.schedule, plan->slowest, &plan->machine, &plan->step);
}

int plan_create(const struct config *config, long ranks, const struct plan_machine *machine,
                struct plan *out) {
    *out = (struct plan){.config = config, .machine = *machine};
    int status = build(out, ranks);
    if (status) plan_free(out);
    return status;
}

double plan_run_seconds(const struct plan *plan) {
    const struct train_config *train = &plan->config->train;
    return plan->step.seconds * batch_sum(train, 0, train->steps) / (double)batch_largest(train);
}
