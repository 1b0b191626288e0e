/* What actions cost besides passes (plan/passes.c): bytes, from the formulas of the calls that send them. */
#include "train/plan/cost.h"

#include "dist/sync/sync.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/table/params.h"
#include "train/partition/boundary_size.h"
#include "train/step/execute.h"
#include "train/optimizer/update.h"

#include <stdlib.h>
#include <string.h>

static void add(struct action_cost *sum, const struct action_cost *cost) {
    sum->flops += cost->flops;
    sum->memory += cost->memory;
    for (int axis = 0; axis < PLAN_AXES; axis++) {
        sum->bytes[axis] += cost->bytes[axis];
        sum->calls[axis] += cost->calls[axis];
    }
}

int64_t cost_message(const struct model_config *config, const struct layout *layout, long tokens,
                     const struct action *action) {
    int64_t elements = payload_is_narrow(action->payload)
                           ? tokens * projected_width(config, layout)
                           : boundary_elements(layout, tokens, config->hidden_size);
    return elements * (int64_t)sizeof(real);
}

/* Of a whole step: what is the same whatever the buckets. */
static struct action_cost norm_cost(const struct costing *of) {
    const struct layout *layout = of->layout;
    struct action_cost cost = {0};
    int size[PLAN_AXES] = {
        [PLAN_TENSOR] = layout->tensor, [PLAN_DATA] = layout->data, [PLAN_PIPELINE] = layout->pipeline};
    for (int axis = 0; axis < PLAN_AXES; axis++) {
        /* Sums of the loss, and of the squares of the gradient (optimizer_norm). */
        cost.bytes[axis] = axis_formula_sum_doubles(size[axis], STEP_SUMS);
        cost.calls[axis] = size[axis] > 1 ? 2 : 0;
        if (axis == PLAN_DATA)
            cost.bytes[axis] += optimizer_formula_norm(of->shards, layout->data);
        else
            cost.bytes[axis] += axis_formula_sum_doubles(size[axis], 1);
    }
    /* Whole matrices come right behind. */
    cost.flops = of->matrices.flops;
    cost.bytes[PLAN_DATA] += of->matrices.data_bytes;
    cost.bytes[PLAN_TENSOR] += of->matrices.tensor_bytes;
    return cost;
}

/* The sums over the tensor axis that come before the first bucket's. */
static struct action_cost partial_cost(const struct costing *of) {
    struct action_cost cost = {0};
    cost.bytes[PLAN_TENSOR] = sync_formula_partial(of->table, of->layout->tensor, of->layout->tensor_index);
    return cost;
}

static struct action_cost bucket_cost(const struct costing *of, int index, enum act act) {
    const struct bucket *bucket = &of->shards->bucket[index];
    struct action_cost cost = {0};
    int data = of->layout->data;
    int64_t all = sync_formula_bucket(bucket, data, 0);
    /* A sharded bucket's gather is of the weights, after the update; another's is of the sums. */
    int64_t gather = axis_formula_gather_rows(data, 0, bucket->count, 1);
    if (act == ACT_GATHER && !bucket->sharded) return cost;
    cost.bytes[PLAN_DATA] = act == ACT_GATHER ? gather : bucket->sharded ? all - gather : all;
    cost.calls[PLAN_DATA] = data > 1;
    return cost;
}

void cost_actions(const struct costing *costing, const struct pass_costs *passes, struct action_cost *cost) {
    const struct costing *of = costing;
    const struct actions *list = &of->schedule->rank[of->layout->pipeline_index];
    bool partial = false;
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        switch (a->act) {
        case ACT_FORWARD:
        case ACT_BACKWARD:
        case ACT_PROJECT:
        case ACT_UNPROJECT:
            cost[i] = passes->action[i];
            break;
        case ACT_SEND:
            cost[i].bytes[PLAN_PIPELINE] = cost_message(of->config, of->layout, of->batch * of->length, a);
            cost[i].calls[PLAN_PIPELINE] = 1;
            break;
        case ACT_SHARE:
            cost[i].bytes[PLAN_PIPELINE] = sync_formula_shared(of->table, of->layout->pipeline_index);
            cost[i].calls[PLAN_PIPELINE] = 1;
            break;
        case ACT_REDUCE:
            cost[i] = bucket_cost(of, a->index, a->act);
            if (!partial) {
                struct action_cost sums = partial_cost(of);
                add(&cost[i], &sums);
            }
            partial = true;
            break;
        case ACT_NORM:
            cost[i] = norm_cost(of);
            break;
        case ACT_UPDATE:
            cost[i].memory = optimizer_update_bytes(&of->shards->bucket[a->index]);
            break;
        case ACT_GATHER:
            cost[i] = bucket_cost(of, a->index, a->act);
            break;
        default:
            break;
        }
    }
}

static void raise_all(struct action_cost *cost, const struct action_cost *other, int count) {
    for (int i = 0; i < count; i++) {
        if (other[i].flops > cost[i].flops) cost[i].flops = other[i].flops;
        for (int axis = 0; axis < PLAN_AXES; axis++) {
            if (other[i].bytes[axis] > cost[i].bytes[axis]) cost[i].bytes[axis] = other[i].bytes[axis];
            if (other[i].calls[axis] > cost[i].calls[axis]) cost[i].calls[axis] = other[i].calls[axis];
        }
    }
}

void pass_costs_raise(struct pass_costs *costs, const struct pass_costs *other) {
    raise_all(costs->action, other->action, costs->actions);
}

int cost_full(const struct model_config *config, long batch, long length, const struct loss_options *options,
              double *flops) {
    struct table table;
    struct model *model;
    TRY(params_create(config, NULL, &table));
    int status = model_create_planned(config, &table, NULL, batch, length, true, &model);
    if (!status) {
        static const int32_t no_tokens[1]; /* nothing reads them */
        struct loss_sums sums;
        double before = ops_counted();
        model_train(model, no_tokens, batch, length, options, &sums);
        *flops = ops_counted() - before;
    }
    if (!status) model_free(model);
    params_free(&table);
    return status;
}
