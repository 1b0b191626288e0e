/* All micro-batches' passes cost the same, so those of the first one are run, in its place in the list, and
 * stand for the others. What passes read and write is known by whether it is there alone: a pointer to
 * nothing marks it. */
#include "train/plan_cost.h"

#include "dist/sync.h"
#include "kernels/base/status.h"
#include "model/params.h"
#include "train/optimizer.h"

#include <stdlib.h>
#include <string.h>

enum { CARGOS = CARGO_EDGE_GRADIENT + 1 };

struct dry_run {
    const struct costing *of;
    struct model *model;
    struct axis tensor;
    int32_t *rows;        /* [batch, length + 1] */
    real **there[CARGOS]; /* [num_layers + 1] by 1 + node, or [edges]: `nothing` where the rank has it, else
                             NULL */
    real **node;          /* [num_layers + 1] the rank's own outputs, and received nodes */
    struct pass_costs *costs;
};

static real nothing[1];

static bool narrow(enum cargo cargo) {
    return cargo == CARGO_EDGE || cargo == CARGO_EDGE_GRADIENT;
}

static struct action_cost counted(const struct dry_run *run) {
    struct action_cost now = {.flops = ops_counted()};
    now.bytes[PLAN_TENSOR] = run->tensor.bytes;
    now.calls[PLAN_TENSOR] = (int)run->tensor.calls;
    return now;
}

static struct action_cost since(const struct dry_run *run, struct action_cost before) {
    struct action_cost now = counted(run);
    now.flops -= before.flops;
    now.bytes[PLAN_TENSOR] -= before.bytes[PLAN_TENSOR];
    now.calls[PLAN_TENSOR] -= before.calls[PLAN_TENSOR];
    return now;
}

static void add(struct action_cost *sum, const struct action_cost *cost) {
    sum->flops += cost->flops;
    sum->memory += cost->memory;
    for (int axis = 0; axis < PLAN_AXES; axis++) {
        sum->bytes[axis] += cost->bytes[axis];
        sum->calls[axis] += cost->calls[axis];
    }
}

static struct pass pass_of(struct dry_run *run, const struct action *a) {
    return (struct pass){
        .chunk = a->chunk,
        .slot = a->slot,
        .rows = run->rows,
        .batch = run->of->batch,
        .length = run->of->length,
        .options = run->of->options,
        .node = run->node,
        .strip = run->there[CARGO_EDGE],
        .gradient = nothing,
        .deposit = run->there[CARGO_DEPOSIT],
        .strip_gradient = run->there[CARGO_EDGE_GRADIENT],
    };
}

static void forward(struct dry_run *run, const struct action *a) {
    struct loss_sums sums = {0};
    struct pass pass = pass_of(run, a);
    struct action_cost before = counted(run);
    model_stage_forward(run->model, &pass, &sums);
    run->costs->forward[a->chunk] = since(run, before);
    struct span span = layout_span(run->of->layout, a->chunk, run->of->config->num_layers);
    for (int node = span.first ? span.first : -1; node < span.end; node++) run->node[1 + node] = nothing;
}

static void backward(struct dry_run *run, const struct action *a) {
    struct loss_sums sums = {0};
    struct pass pass = pass_of(run, a);
    for (int layer = a->layer; layer >= a->end; layer--) {
        struct action_cost before = counted(run);
        model_stage_backward(run->model, &pass, layer, layer, &sums);
        run->costs->backward[1 + layer] = since(run, before);
    }
}

static void project(struct dry_run *run, const struct action *a) {
    struct action_cost before = counted(run);
    model_project(run->model, a->index, nothing, run->of->batch * run->of->length, nothing);
    run->costs->project[a->index] = since(run, before);
}

static void unproject(struct dry_run *run, const struct action *a) {
    struct action_cost before = counted(run);
    model_unproject(run->model, a->index, nothing, run->of->batch * run->of->length, nothing, nothing);
    run->costs->unproject[a->index] = since(run, before);
}

/* Notes that something comes or goes. */
static void mark(struct dry_run *run, const struct action *a, bool there) {
    int at = narrow(a->cargo) ? a->index : 1 + a->index;
    run->there[a->cargo][at] = there ? nothing : NULL;
    if (a->cargo == CARGO_NODE) run->node[at] = there ? nothing : NULL;
}

/* Runs the first micro-batch's passes in the list's order. */
static void run_first(struct dry_run *run) {
    const struct actions *list = &run->of->schedule->rank[run->of->layout->pipeline_index];
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        if (a->micro != 0) continue;
        switch (a->act) {
        case ACT_RECEIVE:
        case ACT_TAKE:
            mark(run, a, true);
            break;
        case ACT_PROJECT:
            project(run, a);
            run->there[CARGO_EDGE][a->index] = nothing;
            break;
        case ACT_FREE:
            mark(run, a, false);
            break;
        case ACT_FORWARD:
            forward(run, a);
            break;
        case ACT_BACKWARD:
            backward(run, a);
            break;
        case ACT_UNPROJECT:
            unproject(run, a);
            break;
        default:
            break;
        }
    }
}

/* ------------------------------------------------------------------------------------ costs of actions */

int64_t cost_message(const struct model_config *config, const struct layout *layout, long tokens,
                     const struct action *action) {
    long width = narrow(action->cargo) ? strip_width(config, layout) : config->hidden_size;
    return tokens * width * (int64_t)sizeof(real);
}

/* Of a whole step: what is the same whatever the buckets. */
static struct action_cost norm_cost(const struct costing *of) {
    const struct layout *layout = of->layout;
    struct action_cost cost = {0};
    int size[PLAN_AXES] = {
        [PLAN_TENSOR] = layout->tensor, [PLAN_DATA] = layout->data, [PLAN_PIPELINE] = layout->pipeline};
    for (int axis = 0; axis < PLAN_AXES; axis++) {
        /* Sums of the loss, and of the squares of the gradient (optimizer_norm). */
        cost.bytes[axis] = axis_formula_sum_doubles(size[axis], 3);
        cost.calls[axis] = size[axis] > 1 ? 2 : 0;
        if (axis == PLAN_DATA)
            cost.bytes[axis] += optimizer_formula_norm(of->shards, layout->data);
        else
            cost.bytes[axis] += axis_formula_sum_doubles(size[axis], 1);
    }
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

/* Reads weight, gradient and moments, writes weight and moments. */
static int64_t update_bytes(const struct bucket *bucket) {
    return 7 * bucket->own_count * (int64_t)sizeof(real);
}

void cost_actions(const struct costing *costing, const struct pass_costs *passes, struct action_cost *cost) {
    const struct costing *of = costing;
    const struct actions *list = &of->schedule->rank[of->layout->pipeline_index];
    bool partial = false;
    for (int i = 0; i < list->count; i++) {
        const struct action *a = &list->action[i];
        switch (a->act) {
        case ACT_FORWARD:
            cost[i] = passes->forward[a->chunk];
            break;
        case ACT_BACKWARD:
            for (int layer = a->layer; layer >= a->end; layer--) add(&cost[i], &passes->backward[1 + layer]);
            break;
        case ACT_PROJECT:
            cost[i] = passes->project[a->index];
            break;
        case ACT_UNPROJECT:
            cost[i] = passes->unproject[a->index];
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
            cost[i].memory = update_bytes(&of->shards->bucket[a->index]);
            break;
        case ACT_GATHER:
            cost[i] = bucket_cost(of, a->index, a->act);
            break;
        default:
            break;
        }
    }
}

/* ------------------------------------------------------------------------------------------- creation */

static void dry_run_free(struct dry_run *run) {
    model_free(run->model);
    axis_free(&run->tensor);
    free(run->rows);
    for (int c = 0; c < CARGOS; c++) free(run->there[c]);
    free(run->node);
}

static int reserve(struct dry_run *run) {
    const struct costing *of = run->of;
    size_t layers = (size_t)of->config->num_layers, edges = (size_t)of->edges->count + 1;
    struct pass_costs *costs = run->costs;
    bool all = (run->rows = calloc((size_t)(of->batch * (of->length + 1)), sizeof *run->rows));
    for (int c = 0; c < CARGOS; c++)
        all = (run->there[c] = calloc(narrow((enum cargo)c) ? edges : layers + 1, sizeof(real *))) && all;
    all = (run->node = calloc(layers + 1, sizeof(real *))) && all;
    all = (costs->forward = calloc((size_t)of->layout->chunks, sizeof *costs->forward)) && all;
    all = (costs->backward = calloc(layers + 2, sizeof *costs->backward)) && all;
    all = (costs->project = calloc(edges, sizeof *costs->project)) && all;
    all = (costs->unproject = calloc(edges, sizeof *costs->unproject)) && all;
    return all ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a plan");
}

static int create_model(struct dry_run *run) {
    const struct costing *of = run->of;
    const struct layout *layout = of->layout;
    struct model_part part = {
        .layout = layout,
        .tensor = &run->tensor,
        .slots = of->slots,
    };
    return model_create_planned(of->config, of->table, &part, of->batch, of->length, true, &run->model);
}

int pass_costs_create(const struct costing *costing, struct pass_costs *out) {
    const struct layout *layout = costing->layout;
    struct dry_run run = {
        .of = costing,
        .costs = out,
        .tensor = axis_planned("tensor", layout->tensor, layout->tensor_index),
    };
    *out = (struct pass_costs){
        .chunks = layout->chunks, .layers = costing->config->num_layers, .edges = costing->edges->count};
    int status = reserve(&run);
    if (!status) status = create_model(&run);
    if (!status) status = axis_reserve(&run.tensor, sync_longest_partial(costing->table));
    if (!status) {
        model_memory(run.model, &out->memory);
        run_first(&run);
        out->scratch = run.tensor.pieces_count * (int64_t)sizeof(real);
    }
    dry_run_free(&run);
    if (status) pass_costs_free(out);
    return status;
}

void pass_costs_free(struct pass_costs *costs) {
    free(costs->forward);
    free(costs->backward);
    free(costs->project);
    free(costs->unproject);
    *costs = (struct pass_costs){0};
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
    raise_all(costs->forward, other->forward, costs->chunks);
    raise_all(costs->backward, other->backward, costs->layers + 2);
    raise_all(costs->project, other->project, costs->edges);
    raise_all(costs->unproject, other->unproject, costs->edges);
}

int cost_whole(const struct model_config *config, long batch, long length, const struct loss_options *options,
               double *flops) {
    struct table table;
    struct model *model;
    TRY(params_create(config, NULL, &table));
    int status = model_create_planned(config, &table, NULL, batch, length, true, &model);
    int32_t *rows = calloc((size_t)(batch * (length + 1)), sizeof *rows);
    if (!status && !rows) status = gdn_fail(GDN_INTERNAL, "out of memory for a plan");
    if (!status) {
        struct loss_sums sums;
        double before = ops_counted();
        model_train(model, rows, batch, length, options, &sums);
        *flops = ops_counted() - before;
    }
    free(rows);
    if (!status) model_free(model);
    params_free(&table);
    return status;
}
