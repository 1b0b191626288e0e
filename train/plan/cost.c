/* What actions of sums and updates cost, which a dry run of passes and messages (plan/passes.c) leaves out:
 * from the formulas of the calls that do them. */
#include "train/plan/cost.h"

#include "dist/sync/sync.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/table/params.h"
#include "train/step/execute.h"
#include "train/step/walk.h"
#include "train/optimizer/update.h"

#include <stdlib.h>
#include <string.h>

void action_cost_add(struct action_cost *sum, const struct action_cost *cost) {
    sum->flops += cost->flops;
    sum->memory += cost->memory;
    sum->within += cost->within;
    for (int axis = 0; axis < AXES; axis++) {
        sum->bytes[axis] += cost->bytes[axis];
        sum->calls[axis] += cost->calls[axis];
        sum->hidden[axis].bytes += cost->hidden[axis].bytes;
        sum->hidden[axis].calls += cost->hidden[axis].calls;
        sum->hidden[axis].covering += cost->hidden[axis].covering;
    }
}

/* ------------------------------------------------------------------------------------------- formulas */

static const struct shards *shards_of(const struct costing *of) {
    return &of->pipeline->shards[of->layout->index[AXIS_PIPELINE]];
}

/* Of a whole step: what is the same whatever the buckets. */
static struct action_cost norm_cost(const struct costing *of) {
    const struct layout *layout = of->layout;
    struct action_cost cost = {0};
    const int *size = layout->size;
    for (int axis = 0; axis < axes_count(); axis++) {
        /* Sums of the loss, and of the squares of the gradient (optimizer_norm). */
        cost.bytes[axis] = axis_formula_sum_doubles(size[axis], step_sums(of->options, of->config->exit.num_layers));
        cost.calls[axis] = size[axis] > 1 ? 2 : 0;
        if (axis == AXIS_COPIES)
            cost.bytes[axis] += optimizer_formula_norm(shards_of(of), layout->size[AXIS_COPIES]);
        else
            cost.bytes[axis] += axis_formula_sum_doubles(size[axis], 1);
    }
    /* Whole matrices come right behind. */
    cost.flops = of->matrices.flops;
    cost.bytes[AXIS_COPIES] += of->matrices.copy_bytes;
    cost.bytes[AXIS_TENSOR] += of->matrices.tensor_bytes;
    return cost;
}

/* The sums over the tensor axis that come before the first bucket's. */
static struct action_cost partial_cost(const struct costing *of) {
    struct action_cost cost = {0};
    cost.bytes[AXIS_TENSOR] =
        sync_formula_partial(of->table, of->layout->size[AXIS_TENSOR], of->layout->index[AXIS_TENSOR]);
    return cost;
}

/* A bucket's sum, or its gather. */
static struct action_cost bucket_cost(const struct costing *of, int index, bool gathers) {
    const struct bucket *bucket = &shards_of(of)->bucket[index];
    struct action_cost cost = {0};
    int copies = of->layout->size[AXIS_COPIES], group = shards_of(of)->group;
    int64_t all = sync_formula_bucket(bucket, copies, 0);
    /* A sharded bucket's gather is of the weights, after the update; another's is of the sums. */
    int64_t gather = axis_formula_gather_rows(copies, 0, bucket->count, 1);
    if (gathers && !bucket->sharded) return cost;
    cost.bytes[AXIS_COPIES] = gathers ? gather : bucket->sharded ? all - gather : all;
    cost.within = sync_formula_within(bucket, group) * (!gathers && !bucket->sharded ? 2 : 1);
    cost.calls[AXIS_COPIES] = (group > 1) + (copies > group);
    return cost;
}

/* ------------------------------------------------------------------------------------------- handlers */

struct pricing {
    const struct costing *of;
    struct action_cost *cost; /* of the action in hand */
    bool partial;             /* the sums over the tensor axis have been counted */
};

static int share(void *pricing, const struct action *a) {
    struct pricing *p = pricing;
    (void)a;
    p->cost->bytes[AXIS_PIPELINE] = sync_formula_shared(p->of->table, p->of->layout->index[AXIS_PIPELINE]);
    p->cost->calls[AXIS_PIPELINE] = 1;
    return 0;
}

static int reduce(void *pricing, const struct action *a) {
    struct pricing *p = pricing;
    *p->cost = bucket_cost(p->of, a->index, false);
    if (!p->partial) {
        struct action_cost sums = partial_cost(p->of);
        action_cost_add(p->cost, &sums);
    }
    p->partial = true;
    return 0;
}

static int norm(void *pricing, const struct action *a) {
    struct pricing *p = pricing;
    (void)a;
    *p->cost = norm_cost(p->of);
    return 0;
}

static int update(void *pricing, const struct action *a) {
    struct pricing *p = pricing;
    p->cost->memory = optimizer_update_bytes(&shards_of(p->of)->bucket[a->index]);
    return 0;
}

static int gather(void *pricing, const struct action *a) {
    struct pricing *p = pricing;
    *p->cost = bucket_cost(p->of, a->index, true);
    return 0;
}

/* Who waits hands nothing over. */
static action_handler *const by_role[ROLES] = {[ROLE_WAIT] = walk_nothing};

static action_handler *const by_kind[ACTS] = {
    [ACT_SHARE] = share,   [ACT_REDUCE] = reduce, [ACT_NORM] = norm,
    [ACT_UPDATE] = update, [ACT_GATHER] = gather,
};

int cost_actions(const struct costing *costing, struct action_cost *cost) {
    const struct actions *list = costing_list(costing);
    struct pricing pricing = {.of = costing};
    const struct walk walk = {by_role, by_kind, .walker = &pricing};
    for (int i = 0; i < list->count; i++) {
        if (!act_is_of_update(list->action[i].act)) continue; /* the dry run has it */
        pricing.cost = &cost[i];
        TRY(walk_action(&walk, &list->action[i]));
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- other costs */

static inline int calls(const struct action_cost *cost) {
    int sum = 0;
    for (int axis = 0; axis < AXES; axis++) sum += cost->calls[axis];
    return sum;
}

void action_costs_raise(struct action_cost *cost, const struct action_cost *other, int count) {
    for (int i = 0; i < count; i++) {
        if (other[i].flops == 0 && calls(&other[i]) == 0) continue; /* as of most actions */
        if (other[i].flops > cost[i].flops) cost[i].flops = other[i].flops;
        for (int axis = 0; axis < AXES; axis++) {
            const struct hidden_cost *hidden = &other[i].hidden[axis];
            struct hidden_cost *most = &cost[i].hidden[axis];
            if (hidden->bytes > most->bytes) most->bytes = hidden->bytes;
            if (hidden->calls > most->calls) most->calls = hidden->calls;
            if (hidden->covering > most->covering) most->covering = hidden->covering;
            if (other[i].bytes[axis] > cost[i].bytes[axis]) cost[i].bytes[axis] = other[i].bytes[axis];
            if (other[i].calls[axis] > cost[i].calls[axis]) cost[i].calls[axis] = other[i].calls[axis];
        }
    }
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
