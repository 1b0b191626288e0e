#include "train/plan/plan.h"

#include <limits.h>
#include <stdlib.h>

#include "dist/mesh/mesh.h"
#include "dist/sync/sync.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/params/params.h"
#include "train/config/batch.h"
#include "train/partition/divide.h"
#include "train/step/execute.h"
#include "train/plan/fit.h"
#include "train/optimizer/optimizer.h"
#include "train/plan/cost.h"
#include "train/memory/saving.h"

/* ------------------------------------------------------------------------------------------- one rank */

/* The part of the optimiser's memory that the formula counts: 8 bytes (for floats) for each parameter, a
 * data-th of the large tensors and all of the small ones. */
static int64_t optimizer_formula(const struct table *table, int data) {
    int64_t large = 0, small = 0;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        bool sharded = row->zone == ZONE_LARGE || row->zone == ZONE_SHARED_LARGE;
        *(sharded ? &large : &small) += row->count;
    }
    return 2 * (int64_t)sizeof(real) * ((large + data - 1) / data + small);
}

static int64_t parameters_of(const struct table *table) {
    int64_t count = 0;
    for (int i = 0; i < table->rows; i++) count += table->row[i].count;
    return count;
}

/* ---------------------------------------------------------------------------------------- pipeline ranks */

static struct plan_rank *rank_at(const struct plan *plan, int data, int tensor, int pipeline) {
    return &plan->rank[tensor + plan->tensor * (data + (long)plan->data * pipeline)];
}

static int64_t data_bytes(const struct plan *plan, const struct shards *shards, int data_index) {
    int64_t bytes =
        axis_formula_sum_doubles(plan->data, STEP_SUMS) + optimizer_formula_norm(shards, plan->data);
    for (int b = 0; b < shards->buckets; b++)
        bytes += sync_formula_bucket(&shards->bucket[b], plan->data, data_index);
    return bytes;
}

/* The figures of all data ranks of one tensor and pipeline index. */
static void fill_ranks(struct plan *plan, const struct rank_plan *part, const struct memory *memory,
                       const struct action_cost *cost) {
    int pipeline = part->layout.pipeline_index;
    struct plan_rank rank = {
        .memory = *memory,
        .optimizer_formula = optimizer_formula(&part->table, plan->data),
        .parameters = parameters_of(&part->table),
    };
    for (int i = 0; i < plan->pipeline.schedule.rank[pipeline].count; i++) {
        rank.flops += cost[i].flops;
        for (int axis = 0; axis < PLAN_AXES; axis++) rank.bytes[axis] += cost[i].bytes[axis];
    }
    for (int data = 0; data < plan->data; data++) {
        rank.bytes[PLAN_DATA] = data_bytes(plan, &part->shards, data);
        *rank_at(plan, data, part->layout.tensor_index, pipeline) = rank;
    }
}

/* Costs of one tensor and pipeline index; raises `most` to its passes'. */
static int plan_passes(struct plan *plan, const struct rank_plan *part, struct pass_costs *most) {
    int tensor = part->layout.tensor_index, pipeline = part->layout.pipeline_index;
    struct action_cost *cost = plan->cost[pipeline * plan->tensor + tensor];
    struct pass_costs passes;
    struct memory memory;
    TRY(rank_plan_costs(part, plan->level, &passes));
    int status = rank_plan_memory(part, &passes, &memory);
    if (!status) {
        cost_actions(&part->costing, &passes, cost);
        fill_ranks(plan, part, &memory, cost);
    }
    if (tensor == 0) {
        *most = passes;
    } else {
        pass_costs_raise(most, &passes);
        pass_costs_free(&passes);
    }
    if (!status && tensor == plan->tensor - 1) cost_actions(&part->costing, most, plan->slowest[pipeline]);
    return status;
}

static int plan_rank(struct plan *plan, int tensor, int pipeline, struct pass_costs *most) {
    struct rank_plan part;
    TRY(rank_plan_create(&plan->work, tensor, pipeline, &part));
    int status = plan_passes(plan, &part, most);
    rank_plan_free(&part);
    return status;
}

static int plan_pipeline_rank(struct plan *plan, int pipeline) {
    struct pass_costs most = {0};
    int status = 0;
    for (int tensor = 0; tensor < plan->tensor && !status; tensor++)
        status = plan_rank(plan, tensor, pipeline, &most);
    pass_costs_free(&most);
    return status;
}

/* --------------------------------------------------------------------------------------------- all of it */

/* As mesh_check does for a run, in words for whoever gave --ranks. */
static int check_ranks(const struct mesh_config *mesh, long ranks) {
    long each = (long)mesh->tensor * mesh->pipeline, needed = each * mesh->data;
    if (mesh->data && needed != ranks)
        return gdn_fail(
            GDN_INPUT,
            "mesh.data: %d with mesh.tensor: %d and mesh.pipeline: %d needs %ld ranks, but --ranks "
            "is %ld; plan it with --ranks %ld, or change one of these keys (mesh.data: 0 takes "
            "all ranks left over)",
            mesh->data, mesh->tensor, mesh->pipeline, needed, ranks, needed);
    if (ranks % each)
        return gdn_fail(GDN_INPUT,
                        "mesh.tensor: %d and mesh.pipeline: %d need a multiple of %ld ranks, but --ranks is "
                        "%ld; plan it with --ranks %ld, or change one of these keys",
                        mesh->tensor, mesh->pipeline, each, ranks, (ranks + each - 1) / each * each);
    return 0;
}

/* Data ranks and micro-batches, as `gdn train` has them on so many ranks. */
static int divide(struct plan *plan, long ranks) {
    const struct mesh_config *mesh = &plan->config->mesh;
    const struct train_config *train = &plan->config->train;
    plan->data = mesh->data;
    plan->tensor = mesh->tensor;
    double named = (double)(mesh->data ? mesh->data : 1) * mesh->tensor * mesh->pipeline;
    if (named > PLAN_RANKS)
        return gdn_fail(GDN_INPUT,
                        "mesh.data: %d with mesh.tensor: %d and mesh.pipeline: %d is more ranks than the %d "
                        "of the largest plan",
                        mesh->data, mesh->tensor, mesh->pipeline, PLAN_RANKS);
    if (!ranks) ranks = (long)named;
    TRY(check_ranks(mesh, ranks));
    TRY(mesh_check(&plan->data, mesh->tensor, mesh->pipeline, (int)ranks));
    plan->ranks = ranks;
    TRY(batch_divide(train, plan->data, &plan->share, &plan->micro));
    plan->micro_batches = (int)(plan->share / plan->micro);
    return 0;
}

int plan_parameters(const struct config *config, int64_t *count) {
    struct table table;
    TRY(params_create(&config->model, NULL, &table));
    *count = parameters_of(&table);
    params_free(&table);
    return 0;
}

static int count_parameters(struct plan *plan) {
    struct table table;
    TRY(params_create(&plan->config->model, NULL, &table));
    plan->parameters = parameters_of(&table);
    for (int i = 0; i < table.rows; i++)
        if (table.row[i].distance || table.row[i].select) plan->connected += table.row[i].count;
    params_free(&table);
    return 0;
}

static int reserve(struct plan *plan) {
    const struct schedule *schedule = &plan->pipeline.schedule;
    size_t pipelines = (size_t)schedule->ranks, columns = pipelines * (size_t)plan->tensor;
    bool all = (plan->ratio = calloc(pipelines, sizeof *plan->ratio)) &&
               (plan->rank = calloc((size_t)plan->ranks, sizeof *plan->rank)) &&
               (plan->cost = calloc(columns, sizeof *plan->cost)) &&
               (plan->slowest = calloc(pipelines, sizeof *plan->slowest));
    for (size_t i = 0; all && i < columns; i++) {
        size_t count = (size_t)schedule->rank[i / (size_t)plan->tensor].count + 1;
        all = (plan->cost[i] = calloc(count, sizeof **plan->cost));
    }
    for (size_t r = 0; all && r < pipelines; r++)
        all = (plan->slowest[r] = calloc((size_t)schedule->rank[r].count + 1, sizeof **plan->slowest));
    return all ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a plan of %ld ranks", plan->ranks);
}

/* Evaluations as training has them where the validation data have as many sequences as a group and a round
 * can use: a plan does not open them. */
static int describe_evaluation(struct plan *plan) {
    const struct data_config *data = &plan->config->data;
    if (!data->validation.count && data->validation_fraction == 0 && data->num_validations == 0) return 0;
    TRY(evaluation_describe(plan->config, plan->data, 0, 0, validation_wanted(&plan->config->train),
                            &plan->evaluation));
    plan->work.evaluation = &plan->evaluation;
    return 0;
}

static int choose_recomputation(struct plan *plan) {
    const struct config *config = plan->config;
    recompute_fixed(&config->train, config->model.num_layers, plan->level);
    if (!recompute_chosen(&config->train)) return 0;
    if (!plan->available.bytes)
        return gdn_fail(GDN_INPUT,
                        "train.recompute or recompute_delta is auto, but train.memory is 0: a plan "
                        "knows of no machine; give the GiB that a rank may use as train.memory");
    for (int r = 0; r < config->mesh.pipeline; r++)
        TRY(recompute_auto(&plan->work, r, plan->available.bytes, plan->level, &plan->ratio[r]));
    return 0;
}

/* The rank that needs most memory. */
struct greatest {
    long rank;
    struct memory memory;
};

static int raise_greatest(const struct plan *plan, int tensor, int pipeline, struct greatest *greatest) {
    struct rank_plan part;
    struct pass_costs sizes;
    struct memory memory;
    TRY(rank_plan_create(&plan->work, tensor, pipeline, &part));
    int status = rank_plan_sizes(&part, plan->level, &sizes);
    if (!status) status = rank_plan_memory(&part, &sizes, &memory);
    rank_plan_free(&part);
    if (!status && memory_sum(&memory) > memory_sum(&greatest->memory))
        *greatest = (struct greatest){tensor + plan->tensor * ((long)plan->data * pipeline), memory};
    return status;
}

/* Of all ranks, until one needs more than `enough`. */
static int find_greatest(const struct plan *plan, int64_t enough, struct greatest *out) {
    for (int pipeline = 0; pipeline < plan->config->mesh.pipeline; pipeline++)
        for (int tensor = 0; tensor < plan->tensor; tensor++) {
            TRY(raise_greatest(plan, tensor, pipeline, out));
            if (memory_sum(&out->memory) > enough) return 0;
        }
    return 0;
}

/* What is computed again, and what that leaves the rank that needs most. */
static int plan_levels(struct plan *plan, struct greatest *most) {
    *most = (struct greatest){0};
    TRY(choose_recomputation(plan));
    return plan->available.bytes ? find_greatest(plan, INT64_MAX, most) : 0;
}

/* checkpoint.asynchronous auto: without the copy where that does not fit on all ranks, as a run of so much
 * memory decides (train/run/memory.c). */
static int choose_saving(struct plan *plan, struct greatest *most) {
    if (plan->config->checkpoint.asynchronous != SAVE_AUTO || !saver_has_intervals(plan->config)) return 0;
    if (memory_fits(&plan->available, &most->memory)) return 0;
    plan->foreground = saver_no_memory;
    plan->work.without_copy = true;
    return plan_levels(plan, most);
}

/* Before what a step costs, which takes far longer to find. */
static int check_memory(struct plan *plan) {
    struct greatest most;
    char who[40];
    TRY(plan_levels(plan, &most));
    TRY(choose_saving(plan, &most));
    snprintf(who, sizeof who, "rank %ld", most.rank);
    const struct fit fit = {plan->config, plan->ranks, &plan->available};
    return fit_check(&fit, who, &most.memory);
}

static int whole_step(struct plan *plan) {
    const struct config *config = plan->config;
    struct loss_options options = rank_plan_options(config);
    double flops;
    TRY(cost_whole(&config->model, plan->micro, config->train.sequence_length, &options, &flops));
    plan->flops = flops * plan->micro_batches * plan->data;
    plan->ideal = plan->flops / (double)plan->ranks / plan->machine.flops;
    return 0;
}

/* What comes before any rank's own part. */
static int prepare(struct plan *plan, long ranks) {
    const struct config *config = plan->config;
    TRY(divide(plan, ranks));
    TRY(pipeline_create(config, plan->data, 0, 0, plan->micro_batches, true, &plan->pipeline));
    pipeline_keep(&plan->pipeline, -1);
    plan->level = calloc((size_t)config->model.num_layers, sizeof *plan->level);
    if (!plan->level) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", config->model.num_layers);
    recompute_fixed(&config->train, config->model.num_layers, plan->level);
    plan->available = memory_given(config);
    plan->work = (struct rank_work){
        .config = config,
        .pipeline = &plan->pipeline,
        .data = plan->data,
        .tensor = plan->tensor,
        .share = plan->share,
        .micro = plan->micro,
    };
    return describe_evaluation(plan);
}

static int build(struct plan *plan, long ranks) {
    const struct config *config = plan->config;
    TRY(prepare(plan, ranks));
    TRY(count_parameters(plan));
    TRY(reserve(plan));
    TRY(check_memory(plan));
    for (int r = 0; r < config->mesh.pipeline; r++) TRY(plan_pipeline_rank(plan, r));
    TRY(whole_step(plan));
    return simulate(&plan->pipeline.schedule, plan->slowest, &plan->machine, &plan->step);
}

int plan_create(const struct config *config, long ranks, const struct plan_machine *machine,
                struct plan *out) {
    *out = (struct plan){.config = config, .machine = *machine};
    int status = build(out, ranks);
    if (status) plan_free(out);
    return status;
}

int plan_greatest_memory(const struct config *config, long ranks, int64_t enough, int64_t *bytes) {
    struct plan plan = {.config = config};
    struct greatest greatest = {0};
    int status = prepare(&plan, ranks);
    plan.work.without_copy = config->checkpoint.asynchronous == SAVE_AUTO; /* which does without at need */
    if (!status) status = find_greatest(&plan, enough, &greatest);
    *bytes = memory_sum(&greatest.memory);
    plan_free(&plan);
    return status;
}

double plan_run_seconds(const struct plan *plan) {
    const struct train_config *train = &plan->config->train;
    return plan->step.seconds * batch_sum(train, 0, train->steps) / (double)batch_largest(train);
}

void plan_free(struct plan *plan) {
    int pipelines = plan->config->mesh.pipeline;
    for (int i = 0; plan->cost && i < pipelines * plan->tensor; i++) free(plan->cost[i]);
    for (int r = 0; plan->slowest && r < pipelines; r++) free(plan->slowest[r]);
    free(plan->cost);
    free(plan->slowest);
    free(plan->rank);
    free(plan->level);
    free(plan->ratio);
    evaluation_free(&plan->evaluation);
    simulation_free(&plan->step);
    pipeline_free(&plan->pipeline);
    *plan = (struct plan){0};
}
