/* The dry run: all passes of a rank's list in its order, by the walk that the executor does
 * (train/step/walk.h), on a model without memory, with operations and sums that only count. Micro-batches
 * differ: what a backward pass has to compute again depends on which passes came in between. What passes read
 * and write is known by whether it is there alone: all buffers are one pointer to nothing. */
#include <stdlib.h>

#include "dist/sync/sync.h"
#include "kernels/backends/backends.h"
#include "kernels/base/arena.h"
#include "kernels/base/status.h"
#include "train/plan/cost.h"
#include "train/step/walk.h"

struct dry_run {
    const struct costing *of;
    const struct actions *list;
    struct model *model;
    struct axis tensor;
    struct arena arena;
    struct locations locations;
    struct pass_costs *costs;
};

static real nothing[1];
static const int32_t no_tokens[1];

/* ------------------------------------------------------------------------------------------- counting */

static struct action_cost counted(const struct dry_run *run) {
    struct action_cost now = {.flops = ops_counted()};
    now.bytes[PLAN_TENSOR] = run->tensor.bytes;
    now.calls[PLAN_TENSOR] = (int)run->tensor.calls;
    return now;
}

/* Adds what was counted since. */
static void add_since(const struct dry_run *run, const struct action_cost *before, struct action_cost *sum) {
    struct action_cost now = counted(run);
    sum->flops += now.flops - before->flops;
    sum->bytes[PLAN_TENSOR] += now.bytes[PLAN_TENSOR] - before->bytes[PLAN_TENSOR];
    sum->calls[PLAN_TENSOR] += now.calls[PLAN_TENSOR] - before->calls[PLAN_TENSOR];
}

/* ------------------------------------------------------------------------------------------- handlers */

static struct pass pass_of(struct dry_run *run, const struct action *a) {
    struct pass pass = {
        .rows = no_tokens,
        .batch = run->of->batch,
        .length = run->of->length,
        .options = run->of->options,
        .gradient = nothing,
    };
    locations_of_pass(&run->locations, a, &pass);
    return pass;
}

static int forward(void *dry_run, const struct action *a) {
    struct dry_run *run = dry_run;
    struct loss_sums sums = {0};
    struct pass pass = pass_of(run, a);
    model_stage_forward(run->model, &pass, &sums);
    return 0;
}

static int backward(void *dry_run, const struct action *a) {
    struct dry_run *run = dry_run;
    struct loss_sums sums = {0};
    struct pass pass = pass_of(run, a);
    for (int layer = a->layer; layer >= a->end; layer--) {
        struct action_cost before = counted(run);
        model_stage_backward(run->model, &pass, layer, layer, &sums);
        add_since(run, &before, &run->costs->layer[1 + layer]);
    }
    return 0;
}

static int project(void *dry_run, const struct action *a) {
    const struct dry_run *run = dry_run;
    model_project(run->model, a->index, nothing, run->of->batch * run->of->length, nothing);
    return 0;
}

static int unproject(void *dry_run, const struct action *a) {
    const struct dry_run *run = dry_run;
    model_unproject(run->model, a->index, nothing, run->of->batch * run->of->length, nothing, nothing);
    return 0;
}

/* What is no pass costs what the formulas say (cost.c). */
static action_handler *const handlers[ACTS] = {
    [ACT_RECEIVE] = walk_nothing,  [ACT_POST] = walk_nothing,   [ACT_TAKE] = walk_nothing,
    [ACT_FORWARD] = forward,       [ACT_PROJECT] = project,     [ACT_BACKWARD] = backward,
    [ACT_UNPROJECT] = unproject,   [ACT_SEND] = walk_nothing,   [ACT_FREE] = walk_nothing,
    [ACT_SHARE] = walk_nothing,    [ACT_REDUCE] = walk_nothing, [ACT_FINISH] = walk_nothing,
    [ACT_NORM] = walk_nothing,     [ACT_UPDATE] = walk_nothing, [ACT_GATHER] = walk_nothing,
    [ACT_GATHERED] = walk_nothing,
};

static int run_all(struct dry_run *run) {
    const struct walk walk = {.by_kind = handlers, .walker = run, .locations = &run->locations};
    for (int i = 0; i < run->list->count; i++) {
        struct action_cost before = counted(run);
        TRY(walk_action(&walk, &run->list->action[i]));
        add_since(run, &before, &run->costs->action[i]);
    }
    return model_status(run->model);
}

/* ------------------------------------------------------------------------------------------- creation */

static void dry_run_free(struct dry_run *run) {
    model_free(run->model);
    axis_free(&run->tensor);
    arena_free(&run->arena);
}

static int reserve_costs(struct pass_costs *costs, int num_layers) {
    costs->action = calloc((size_t)costs->actions + 1, sizeof *costs->action);
    costs->layer = calloc((size_t)num_layers + 2, sizeof *costs->layer);
    return costs->action && costs->layer ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a plan");
}

static int create_model(struct dry_run *run) {
    const struct costing *of = run->of;
    struct model_part part = {
        .layout = of->layout,
        .tensor = &run->tensor,
        .activation_sets = of->activation_sets,
        .recompute = of->recompute,
        .compress_sources = of->compress_sources,
    };
    TRY(model_create_planned(of->config, of->table, &part, of->batch, of->length, true, &run->model));
    return axis_reserve(&run->tensor, sync_longest_partial(of->table));
}

static int create_locations(struct dry_run *run) {
    const struct costing *of = run->of;
    int rank = of->layout->pipeline_index, micro_batches = 0;
    for (int i = 0; i < run->list->count; i++)
        if (run->list->action[i].micro_batch >= micro_batches)
            micro_batches = run->list->action[i].micro_batch + 1;
    run->arena.name = "a plan";
    run->locations = (struct locations){
        .layout = of->layout,
        .edges = of->edges,
        .num_layers = of->config->num_layers,
        .micro_batches = micro_batches,
        .blocks = of->schedule->blocks[rank],
        .narrow_blocks = of->schedule->narrow_blocks[rank],
        .activation_sets = of->activation_sets,
        .model = run->model,
    };
    locations_lay_out(&run->locations, &run->arena);
    TRY(arena_reserve(&run->arena));
    locations_lay_out(&run->locations, &run->arena);
    locations_forget(&run->locations);
    for (int i = 0; i < run->locations.blocks + run->locations.narrow_blocks; i++)
        run->locations.buffer[i].x = nothing;
    return 0;
}

static void note_sizes(const struct dry_run *run, struct pass_costs *out) {
    model_memory(run->model, &out->memory);
    out->pieces = run->tensor.pieces_count;
}

int pass_sizes(const struct costing *costing, struct pass_costs *out) {
    const struct layout *layout = costing->layout;
    struct dry_run run = {.of = costing,
                          .tensor = axis_planned("tensor", layout->tensor, layout->tensor_index)};
    *out = (struct pass_costs){0};
    int status = create_model(&run);
    if (!status) note_sizes(&run, out);
    dry_run_free(&run);
    return status;
}

int pass_costs_create(const struct costing *costing, struct pass_costs *out) {
    const struct layout *layout = costing->layout;
    struct dry_run run = {
        .of = costing,
        .list = &costing->schedule->rank[layout->pipeline_index],
        .costs = out,
        .tensor = axis_planned("tensor", layout->tensor, layout->tensor_index),
    };
    *out = (struct pass_costs){.actions = run.list->count};
    int status = reserve_costs(out, costing->config->num_layers);
    if (!status) status = create_model(&run);
    if (!status) status = create_locations(&run);
    if (!status) note_sizes(&run, out);
    if (!status) status = run_all(&run);
    dry_run_free(&run);
    if (status) pass_costs_free(out);
    return status;
}

void pass_costs_free(struct pass_costs *costs) {
    free(costs->action);
    free(costs->layer);
    *costs = (struct pass_costs){0};
}
