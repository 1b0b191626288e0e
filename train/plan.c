#include "train/plan.h"

#include <math.h>
#include <stdlib.h>

#include "dist/mesh.h"
#include "dist/sync.h"
#include "kernels/base/status.h"
#include "model/edges.h"
#include "model/params.h"
#include "train/batch.h"
#include "train/optimizer.h"
#include "train/plan_cost.h"

int64_t plan_memory_sum(const struct plan_memory *m) {
    return m->weights + m->gradients + m->optimizer + m->activations + m->messages + m->workspace;
}

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

/* A rank's part: its own layout and table, the schedule of all. */
struct part {
    struct layout layout;
    struct table table;
    struct shards shards; /* of data index 0; buckets are the same for all */
};

static int part_create(const struct plan *plan, int tensor, int pipeline, struct part *out) {
    *out = (struct part){.layout = plan->pipeline.layout[pipeline]};
    out->layout.tensor_index = tensor;
    TRY(params_create(&plan->config->model, &out->layout, &out->table));
    int status = shards_create(&out->table, plan->data, 0, plan->config->mesh.bucket, &out->shards);
    if (status) params_free(&out->table);
    return status;
}

static void part_free(struct part *part) {
    shards_free(&part->shards);
    params_free(&part->table);
}

static int64_t data_bytes(const struct plan *plan, const struct shards *shards, int data_index) {
    int64_t bytes = axis_formula_sum_doubles(plan->data, 3) + optimizer_formula_norm(shards, plan->data);
    for (int b = 0; b < shards->buckets; b++)
        bytes += sync_formula_bucket(&shards->bucket[b], plan->data, data_index);
    return bytes;
}

static struct plan_memory memory_of(const struct plan *plan, const struct part *part,
                                    const struct pass_costs *passes) {
    const struct model_config *model = &plan->config->model;
    int rank = part->layout.pipeline_index;
    int64_t size = sizeof(real), tokens = plan->micro * plan->config->train.sequence_length;
    int64_t blocks = plan->pipeline.blocks[rank], strips = plan->pipeline.strips[rank];
    return (struct plan_memory){
        .weights = part->table.total * size,
        .gradients = part->table.total * size,
        .optimizer = 2 * part->shards.moments * size,
        .activations = passes->memory.activations,
        .messages = blocks * tokens * model->hidden_size * size +
                    (strips ? strips * tokens * strip_width(model, &part->layout) * size : 0) +
                    sync_formula_scratch(&part->table, &part->shards, plan->data, plan->tensor) +
                    passes->scratch,
        .workspace = passes->memory.workspace,
    };
}

/* The figures of all data ranks of one tensor and pipeline index. */
static void fill_ranks(struct plan *plan, const struct part *part, const struct pass_costs *passes,
                       const struct action_cost *cost) {
    int pipeline = part->layout.pipeline_index;
    struct plan_rank rank = {
        .memory = memory_of(plan, part, passes),
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

/* What a training step computes with all distances introduced and the regulariser, if any, at work. */
static struct loss_options options_of(const struct config *config) {
    const struct delta_config *delta = &config->model.delta;
    bool on = delta->regularizer != REGULARIZER_NONE;
    return (struct loss_options){
        .active = delta->num_distances,
        .token_weight = 1,
        .sparsity_weight = on,
        .entropy_weight = on,
        .measure = on,
    };
}

/* Costs of one tensor and pipeline index; raises `most` to its passes'. */
static int plan_rank(struct plan *plan, int tensor, int pipeline, struct pass_costs *most) {
    struct part part;
    struct pass_costs passes;
    struct loss_options options = options_of(plan->config);
    TRY(part_create(plan, tensor, pipeline, &part));
    struct costing costing = {
        .config = &plan->config->model,
        .layout = &part.layout,
        .table = &part.table,
        .edges = &plan->pipeline.edges,
        .schedule = &plan->pipeline.schedule,
        .shards = &plan->pipeline.shards[pipeline],
        .slots = plan->pipeline.slots + pipeline * part.layout.chunks,
        .batch = plan->micro,
        .length = plan->config->train.sequence_length,
        .options = &options,
    };
    int status = pass_costs_create(&costing, &passes);
    if (!status) {
        struct action_cost *cost = plan->cost[pipeline * plan->tensor + tensor];
        cost_actions(&costing, &passes, cost);
        fill_ranks(plan, &part, &passes, cost);
        if (tensor == 0) {
            *most = passes;
        } else {
            pass_costs_raise(most, &passes);
            pass_costs_free(&passes);
        }
        if (tensor == plan->tensor - 1) cost_actions(&costing, most, plan->slowest[pipeline]);
    }
    part_free(&part);
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
    TRY(mesh_check(&plan->data, mesh->tensor, mesh->pipeline, (int)ranks));
    plan->ranks = ranks;
    long share;
    TRY(batch_divide(train, plan->data, &share, &plan->micro));
    plan->micro_batches = (int)(share / plan->micro);
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
    bool all = (plan->rank = calloc((size_t)plan->ranks, sizeof *plan->rank)) &&
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

static int whole_step(struct plan *plan) {
    const struct config *config = plan->config;
    struct loss_options options = options_of(config);
    double flops;
    TRY(cost_whole(&config->model, plan->micro, config->train.sequence_length, &options, &flops));
    plan->flops = flops * plan->micro_batches * plan->data;
    plan->ideal = plan->flops / (double)plan->ranks / plan->machine.flops;
    return 0;
}

static int build(struct plan *plan, long ranks) {
    const struct config *config = plan->config;
    TRY(divide(plan, ranks));
    TRY(pipeline_create(config, plan->data, 0, 0, plan->micro_batches, true, &plan->pipeline));
    pipeline_keep(&plan->pipeline, -1);
    TRY(count_parameters(plan));
    TRY(reserve(plan));
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

void plan_free(struct plan *plan) {
    int pipelines = plan->config->mesh.pipeline;
    for (int i = 0; plan->cost && i < pipelines * plan->tensor; i++) free(plan->cost[i]);
    for (int r = 0; plan->slowest && r < pipelines; r++) free(plan->slowest[r]);
    free(plan->cost);
    free(plan->slowest);
    free(plan->rank);
    simulation_free(&plan->step);
    pipeline_free(&plan->pipeline);
    *plan = (struct plan){0};
}
