/* The dry run: all passes of a rank's list in its order, as the executor would run them (train/step/step.c).
 * Micro-batches differ: what a backward pass has to compute again depends on which passes came in between.
 * What passes read and write is known by whether it is there alone: a pointer to nothing marks it. */
#include <stdlib.h>

#include "dist/sync/sync.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "train/plan/cost.h"

enum { CARGOS = CARGO_EDGE_GRADIENT + 1 };

struct dry_run {
    const struct costing *of;
    const struct actions *list;
    int micro_batches;
    struct model *model;
    struct axis tensor;
    int *where[CARGOS]; /* [micro_batches, num_layers + 1 or edges] 1 + the buffer that holds it; 0: none does
                         */
    bool *in_slot;      /* [micro_batches, chunks] the chunk's activations are there */
    int *chunk_of;      /* [num_layers + 1] by 1 + node: chunk of this rank that computes it, −1 */
    real **node, **deposit, **strip, **strip_gradient; /* of the pass in progress */
    struct pass_costs *costs;
};

static real nothing[1];
static const int32_t no_tokens[1];

static long entries(const struct dry_run *run, enum cargo cargo) {
    return cargo_is_strip(cargo) ? run->of->edges->count : run->of->config->num_layers + 1;
}

static int *entry(const struct dry_run *run, enum cargo cargo, int micro, int index) {
    return &run->where[cargo][micro * entries(run, cargo) + (cargo_is_strip(cargo) ? index : 1 + index)];
}

static real *held(const struct dry_run *run, enum cargo cargo, int micro, int index) {
    return *entry(run, cargo, micro, index) ? nothing : NULL;
}

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

/* ------------------------------------------------------------------------------------------- passes */

/* The lowest node that a chunk's layers read, its stream included. */
static int lowest_source(const struct dry_run *run, struct span span) {
    const struct edges *edges = run->of->edges;
    int lowest = span.first - 1;
    for (int e = edges->first[span.first]; e < edges->first[span.end]; e++)
        if (edges->edge[e].source < lowest) lowest = edges->edge[e].source;
    return lowest;
}

static struct pass pass_of(struct dry_run *run, const struct action *a) {
    const struct model_config *config = run->of->config;
    const struct edges *edges = run->of->edges;
    struct span span = layout_span(run->of->layout, a->chunk, config->num_layers);
    int edge = edges->first[span.first], lowest = lowest_source(run, span);
    for (int node = lowest; node < span.end; node++) {
        int chunk = run->chunk_of[1 + node];
        bool own =
            chunk >= 0 && chunk != a->chunk && run->in_slot[a->micro * run->of->layout->chunks + chunk];
        run->node[1 + node] = own ? nothing : held(run, CARGO_NODE, a->micro, node);
        run->deposit[1 + node] = held(run, CARGO_DEPOSIT, a->micro, node);
    }
    for (int e = edge; e < edges->first[span.end]; e++) {
        run->strip[e] = held(run, CARGO_EDGE, a->micro, e);
        run->strip_gradient[e] = held(run, CARGO_EDGE_GRADIENT, a->micro, e);
    }
    return (struct pass){
        .chunk = a->chunk,
        .slot = a->slot,
        .rows = no_tokens,
        .batch = run->of->batch,
        .length = run->of->length,
        .options = run->of->options,
        .node = run->node,
        .strip = run->strip,
        .gradient = nothing,
        .deposit = run->deposit,
        .strip_gradient = run->strip_gradient,
    };
}

static bool *in_slot(const struct dry_run *run, const struct action *a) {
    return &run->in_slot[a->micro * run->of->layout->chunks + a->chunk];
}

static void forward(struct dry_run *run, const struct action *a) {
    struct loss_sums sums = {0};
    struct pass pass = pass_of(run, a);
    model_stage_forward(run->model, &pass, &sums);
    *in_slot(run, a) = true;
}

static void backward(struct dry_run *run, const struct action *a) {
    struct loss_sums sums = {0};
    struct pass pass = pass_of(run, a);
    struct span span = layout_span(run->of->layout, a->chunk, run->of->config->num_layers);
    for (int layer = a->layer; layer >= a->end; layer--) {
        struct action_cost before = counted(run);
        model_stage_backward(run->model, &pass, layer, layer, &sums);
        add_since(run, &before, &run->costs->layer[1 + layer]);
    }
    if (a->end == (span.first ? span.first : -1)) *in_slot(run, a) = false;
}

static void hold(struct dry_run *run, const struct action *a) {
    *entry(run, a->cargo, a->micro, a->index) = 1 + a->buffer;
}

/* Unless another buffer holds that by now. */
static void let_go(struct dry_run *run, const struct action *a) {
    int *at = entry(run, a->cargo, a->micro, a->index);
    if (*at == 1 + a->buffer) *at = 0;
}

static void act(struct dry_run *run, const struct action *a) {
    long T = run->of->batch * run->of->length;
    switch (a->act) {
    case ACT_RECEIVE:
    case ACT_TAKE:
        hold(run, a);
        break;
    case ACT_PROJECT:
        hold(run, a);
        model_project(run->model, a->index, nothing, T, nothing);
        break;
    case ACT_SEND:
        if (a->buffer >= 0 && a->cargo != CARGO_NODE && a->cargo != CARGO_EDGE) let_go(run, a);
        break;
    case ACT_FREE:
        let_go(run, a);
        break;
    case ACT_FORWARD:
        forward(run, a);
        break;
    case ACT_BACKWARD:
        backward(run, a);
        break;
    case ACT_UNPROJECT:
        model_unproject(run->model, a->index, nothing, T, nothing, nothing);
        break;
    default:
        break;
    }
}

/* ------------------------------------------------------------------------------------------- creation */

static void dry_run_free(struct dry_run *run) {
    model_free(run->model);
    axis_free(&run->tensor);
    for (int c = 0; c < CARGOS; c++) free(run->where[c]);
    free(run->in_slot);
    free(run->chunk_of);
    free(run->node);
    free(run->deposit);
    free(run->strip);
    free(run->strip_gradient);
}

static int reserve(struct dry_run *run) {
    const struct costing *of = run->of;
    size_t layers = (size_t)of->config->num_layers, edges = (size_t)of->edges->count + 1,
           micros = (size_t)run->micro_batches, chunks = (size_t)of->layout->chunks;
    struct pass_costs *costs = run->costs;
    bool all = (run->in_slot = calloc(micros * chunks, sizeof *run->in_slot)) &&
               (run->chunk_of = calloc(layers + 1, sizeof *run->chunk_of)) &&
               (run->node = calloc(layers + 1, sizeof *run->node)) &&
               (run->deposit = calloc(layers + 1, sizeof *run->deposit)) &&
               (run->strip = calloc(edges, sizeof *run->strip)) &&
               (run->strip_gradient = calloc(edges, sizeof *run->strip_gradient)) &&
               (costs->action = calloc((size_t)costs->actions + 1, sizeof *costs->action)) &&
               (costs->layer = calloc(layers + 2, sizeof *costs->layer));
    for (int c = 0; all && c < CARGOS; c++)
        all =
            (run->where[c] = calloc(micros * (size_t)entries(run, (enum cargo)c) + 1, sizeof *run->where[c]));
    return all ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a plan");
}

static void find_chunks(struct dry_run *run) {
    const struct layout *layout = run->of->layout;
    for (int node = -1; node < run->of->config->num_layers; node++) {
        int stage = layout_stage_of(layout, node);
        bool own = stage % layout->pipeline == layout->pipeline_index;
        run->chunk_of[1 + node] = own ? stage / layout->pipeline : -1;
    }
}

static int create_model(struct dry_run *run) {
    const struct costing *of = run->of;
    struct model_part part = {
        .layout = of->layout,
        .tensor = &run->tensor,
        .slots = of->slots,
        .recompute = of->recompute,
        .compress_sources = of->compress_sources,
    };
    TRY(model_create_planned(of->config, of->table, &part, of->batch, of->length, true, &run->model));
    return axis_reserve(&run->tensor, sync_longest_partial(of->table));
}

static void note_sizes(const struct dry_run *run, struct pass_costs *out) {
    model_memory(run->model, &out->memory);
    out->pieces = run->tensor.pieces_count;
}

static int run_all(struct dry_run *run) {
    for (int i = 0; i < run->list->count; i++) {
        struct action_cost before = counted(run);
        act(run, &run->list->action[i]);
        add_since(run, &before, &run->costs->action[i]);
    }
    return model_status(run->model);
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
    for (int i = 0; i < run.list->count; i++)
        if (run.list->action[i].micro >= run.micro_batches) run.micro_batches = run.list->action[i].micro + 1;
    *out = (struct pass_costs){.actions = run.list->count};
    int status = reserve(&run);
    if (!status) status = create_model(&run);
    if (!status) {
        find_chunks(&run);
        note_sizes(&run, out);
        status = run_all(&run);
    }
    dry_run_free(&run);
    if (status) pass_costs_free(out);
    return status;
}

void pass_costs_free(struct pass_costs *costs) {
    free(costs->action);
    free(costs->layer);
    *costs = (struct pass_costs){0};
}
