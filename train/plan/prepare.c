#include "train/plan/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "dist/mesh/mesh.h"
#include "kernels/base/status.h"
#include "model/model.h"
#include "model/table/params.h"
#include "train/optimizer/groups.h"
#include "train/partition/divide.h"

int64_t plan_table_parameters(const struct table *table) {
    int64_t count = 0;
    for (int i = 0; i < table->rows; i++) count += table->row[i].count;
    return count;
}

/* ---------------------------------------------------------------------------------------------- the mesh */

/* As mesh_validate does for a run, in words for whoever gave --ranks. */
static int validate_ranks(const struct mesh_config *mesh, long ranks) {
    int rest = axes_rest(), size = mesh->size[rest];
    long each = axes_each(mesh->size), needed = each * size;
    char others[AXES_TEXT];
    axes_others(mesh->size, others);
    if (size && needed != ranks)
        return gdn_fail(GDN_INPUT,
                        "%s: %d with %s needs %ld ranks, but --ranks is %ld; plan it with --ranks %ld, or "
                        "change one of these keys (%s: 0 takes all ranks left over)",
                        axis_rows[rest].key, size, others, needed, ranks, needed, axis_rows[rest].key);
    if (ranks % each)
        return gdn_fail(GDN_INPUT,
                        "%s need a multiple of %ld ranks, but --ranks is %ld; plan it with --ranks %ld, or "
                        "change one of these keys",
                        others, each, ranks, (ranks + each - 1) / each * each);
    return 0;
}

/* The mesh and micro-batches, as `gdn train` has them on so many ranks. */
static int divide(struct plan *plan, long ranks) {
    const struct mesh_config *mesh = &plan->config->mesh;
    const struct train_config *train = &plan->config->train;
    int rest = axes_rest();
    char others[AXES_TEXT];
    double named = mesh->size[rest] ? mesh->size[rest] : 1;
    for (int a = 0; a < axes_count(); a++)
        if (a != rest) named *= mesh->size[a];
    memcpy(plan->size, mesh->size, sizeof plan->size);
    if (named > PLAN_RANKS)
        return gdn_fail(GDN_INPUT, "%s: %d with %s is more ranks than the %d of the largest plan",
                        axis_rows[rest].key, mesh->size[rest], axes_others(mesh->size, others), PLAN_RANKS);
    if (!ranks) ranks = (long)named;
    TRY(validate_ranks(mesh, ranks));
    TRY(mesh_validate(plan->size, (int)ranks));
    plan->ranks = ranks;
    plan->batch_parts = axes_batch(plan->size, 0).parts;
    TRY(batch_divide(train, plan->batch_parts, &plan->share, &plan->micro_batch));
    plan->micro_batches = (int)(plan->share / plan->micro_batch);
    return 0;
}

/* What the device has not, or ways between its ranks, in the words of a run; where it is not known yet, it
 * may be any. */
static int validate_device(const struct plan *plan) {
    const struct config *config = plan->config;
    const bool host = config->device == DEVICE_CPU, through_host = config->mesh.transport == MESH_STAGED;
    const char *name = config_device_name(config);
    bool staged[AXES] = {false};
    if (config->device == DEVICE_AUTO) return 0;
    TRY(config_validate_graphs(config, !host));
    if (host) return mesh_validate_host(name, (enum mesh_transport)config->mesh.transport);
    TRY(model_validate_device(&config->model, name));
    for (int a = 0; a < axes_count(); a++) staged[a] = through_host && plan->size[a] > 1;
    return config_validate_staged(config, staged);
}

int plan_parameters(const struct config *config, int64_t *count, int64_t *moments) {
    struct table table;
    TRY(params_create(&config->model, NULL, &table));
    optimizer_treat(&config->train, &table);
    *count = plan_table_parameters(&table);
    *moments = 0;
    for (int i = 0; i < table.rows; i++)
        *moments += table.row[i].count * table.row[i].treatment.moments->count;
    params_free(&table);
    return 0;
}

/* Evaluations as training has them where the validation data have as many sequences as a group and a round
 * can use: a plan does not open them. */
static int describe_evaluation(struct plan *plan) {
    const struct data_config *data = &plan->config->data;
    if (!data->validation.count && data->validation_fraction == 0 && data->num_validations == 0) return 0;
    const struct partition_place place = partition_place_of(plan->size, 0);
    TRY(evaluation_describe(plan->config, &place, validation_wanted(&plan->config->train, plan->config->train.eval_batches),
                            &plan->evaluation));
    plan->work.evaluation = &plan->evaluation;
    return 0;
}

int plan_prepare(struct plan *plan, long ranks) {
    const struct config *config = plan->config;
    TRY(divide(plan, ranks));
    TRY(validate_device(plan));
    const struct partition_place place = partition_place_of(plan->size, 0);
    TRY(pipeline_create(config, &place, plan->micro_batches, true, &plan->pipeline));
    pipeline_keep(&plan->pipeline, -1);
    plan->policy = calloc((size_t)config->model.num_layers, sizeof *plan->policy);
    if (!plan->policy) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", config->model.num_layers);
    recompute_fixed(&config->train, config->model.num_layers, plan->policy);
    plan->available = memory_given(config);
    plan->work = (struct rank_work){
        .config = config,
        .pipeline = &plan->pipeline,
        .share = plan->share,
        .micro_batch = plan->micro_batch,
    };
    const struct axis_sizes joined = axes_joined(plan->size);
    memcpy(plan->work.size, joined.size, sizeof plan->work.size);
    return describe_evaluation(plan);
}

/* ------------------------------------------------------------------------------- the rank that needs most */

static int raise_max(const struct plan *plan, int tensor, int pipeline, struct plan_max *max) {
    struct rank_plan part;
    struct pass_costs sizes;
    struct memory memory;
    TRY(rank_plan_create(&plan->work, tensor, pipeline, &part));
    int status = rank_plan_sizes(&part, plan->policy, &sizes);
    if (!status) status = rank_plan_memory(&part, &sizes, &memory);
    rank_plan_free(&part);
    if (!status && memory_sum(&memory) > memory_sum(&max->memory))
        *max = (struct plan_max){axes_rank_joined(plan->size, part.layout.index), memory};
    return status;
}

int plan_find_max(const struct plan *plan, int64_t enough, struct plan_max *out) {
    for (int pipeline = 0; pipeline < plan->config->mesh.size[AXIS_PIPELINE]; pipeline++)
        for (int tensor = 0; tensor < plan->size[AXIS_TENSOR]; tensor++) {
            TRY(raise_max(plan, tensor, pipeline, out));
            if (memory_sum(&out->memory) > enough) return 0;
        }
    return 0;
}

int plan_max_memory(const struct config *config, long ranks, int64_t enough, int64_t *bytes) {
    struct plan plan = {.config = config};
    struct plan_max max = {0};
    int status = plan_prepare(&plan, ranks);
    plan.work.without_copy = config->checkpoint.asynchronous == SAVE_AUTO; /* which does without at need */
    if (!status) status = plan_find_max(&plan, enough, &max);
    *bytes = memory_sum(&max.memory);
    plan_free(&plan);
    return status;
}

void plan_free(struct plan *plan) {
    int pipelines = plan->config->mesh.size[AXIS_PIPELINE];
    for (int i = 0; plan->cost && i < pipelines * plan->size[AXIS_TENSOR]; i++) free(plan->cost[i]);
    for (int r = 0; plan->slowest && r < pipelines; r++) free(plan->slowest[r]);
    free(plan->cost);
    free(plan->slowest);
    free(plan->rank);
    free(plan->policy);
    free(plan->ratio);
    evaluation_free(&plan->evaluation);
    simulation_free(&plan->step);
    pipeline_free(&plan->pipeline);
    *plan = (struct plan){0};
}
