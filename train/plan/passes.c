/* What passes and messages cost: a dry run of the rank's list (train/step/dry_run.h), in its order.
 * Micro-batches differ: what a backward pass has to compute again depends on which passes came in between. */
#include <stdlib.h>

#include "dist/sync/sync.h"
#include "kernels/backends/backends.h"
#include "kernels/base/status.h"
#include "model/params/stream.h"
#include "train/partition/boundary_size.h"
#include "train/plan/cost.h"
#include "train/step/dry_run.h"

struct counting {
    const struct costing *of;
    struct model *model;
    struct mesh mesh; /* of planned axes */
    struct pass_costs *costs;
    struct axis_cover cover[AXES];                  /* of what travels beside arithmetic */
    struct action_cost before_action, before_layer; /* what was counted by then */
};

/* ------------------------------------------------------------------------------------------- counting */

/* Most actions cost nothing. */
static inline bool nothing_since(const struct counting *c, const struct action_cost *before) {
    bool any = before->flops != ops_counted();
    for (int a = 0; a < AXES; a++) any |= before->calls[a] != (int)c->mesh.axis[a].calls;
    return !any;
}

/* Adds what was counted since `before` to `sum`, and goes on from here. No optimiser's memory. */
static void add_since(const struct counting *c, struct action_cost *before, struct action_cost *sum) {
    double flops = ops_counted();
    sum->flops += flops - before->flops;
    before->flops = flops;
    for (int a = 0; a < AXES; a++) {
        const struct axis *axis = &c->mesh.axis[a];
        sum->bytes[a] += axis->bytes - before->bytes[a];
        sum->calls[a] += (int)axis->calls - before->calls[a];
        before->bytes[a] = axis->bytes;
        before->calls[a] = (int)axis->calls;
        const struct hidden_cost now = {c->cover[a].hidden_bytes, c->cover[a].hidden_calls,
                                        c->cover[a].covering};
        sum->hidden[a].bytes += now.bytes - before->hidden[a].bytes;
        sum->hidden[a].calls += now.calls - before->hidden[a].calls;
        sum->hidden[a].covering += now.covering - before->hidden[a].covering;
        before->hidden[a] = now;
    }
}

static void action_done(void *counting, int i) {
    struct counting *c = counting;
    if (nothing_since(c, &c->before_action)) return;
    add_since(c, &c->before_action, &c->costs->action[i]);
    c->before_layer = c->before_action;
}

static void layer_done(void *counting, int layer) {
    struct counting *c = counting;
    add_since(c, &c->before_layer, &c->costs->layer[1 + layer]);
}

/* ------------------------------------------------------------------------------------------- the run */

const struct actions *costing_list(const struct costing *of) {
    const struct schedule *schedule =
        pipeline_schedule(of->pipeline, of->pipeline->micro_batches, of->options->active);
    return &schedule->rank[of->layout->index[AXIS_PIPELINE]];
}

static int reserve_costs(struct pass_costs *costs, int num_layers) {
    costs->action = calloc((size_t)costs->actions + 1, sizeof *costs->action);
    costs->layer = calloc((size_t)num_layers + 2, sizeof *costs->layer);
    return costs->action && costs->layer ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a plan");
}

/* A model without memory, and what it and the scratch of its sums would need. */
static int begin(struct counting *c, const struct costing *of, struct pass_costs *out) {
    const struct layout *layout = of->layout;
    *c = (struct counting){.of = of, .costs = out};
    for (int a = 0; a < axes_count(); a++)
        c->mesh.axis[a] = axis_planned(axis_rows[a].name, layout->size[a], layout->index[a]);
    c->mesh.axis[AXIS_CONTEXT] = axis_planned("context", of->context, 0); /* all hand over as much */
    for (int a = 0; a < axes_count(); a++) {
        c->cover[a].work = ops_counted;
        c->mesh.axis[a].cover = &c->cover[a];
    }
    struct model_part part = {
        .layout = layout,
        .tensor = &c->mesh.axis[AXIS_TENSOR],
        .context = &c->mesh.axis[AXIS_CONTEXT],
        .context_exchange = of->context_exchange,
        .activation_sets = of->pipeline->activation_sets + layout->index[AXIS_PIPELINE] * layout->chunks,
        .recompute = of->recompute,
        .weight_sets = of->pipeline->weight_sets[layout->index[AXIS_PIPELINE]],
        .weights_from = of->pipeline->weights_from[layout->index[AXIS_PIPELINE]],
        .compress_sources = of->compress_sources,
        .bf16_activations = of->bf16_activations,
        .documents = of->documents,
        .padding = of->padding,
    };
    TRY(model_size_weight_sets(of->config, of->table, &part, of->batch, of->length));
    TRY(model_create_planned(of->config, of->table, &part, of->batch, of->length, true, &c->model));
    TRY(axis_reserve(&c->mesh.axis[AXIS_TENSOR], sync_longest_partial(of->table)));
    TRY(axis_reserve(&c->mesh.axis[AXIS_CONTEXT],
                     boundary_sum(layout, of->batch * of->length, stream_width(of->config))));
    model_memory(c->model, &out->memory);
    out->pieces = c->mesh.axis[AXIS_TENSOR].pieces_count;
    out->context_pieces = c->mesh.axis[AXIS_CONTEXT].pieces_count;
    return 0;
}

static void end(struct counting *c) {
    model_free(c->model);
    axis_free(&c->mesh.axis[AXIS_TENSOR]);
}

int pass_sizes(const struct costing *costing, struct pass_costs *out) {
    struct counting c;
    *out = (struct pass_costs){0};
    int status = begin(&c, costing, out);
    end(&c);
    return status;
}

static int run(struct counting *c) {
    const struct costing *of = c->of;
    const struct execution execution = {
        .mesh = &c->mesh,
        .config = of->config,
        .pipeline = of->pipeline,
        .ops = ops_find("count"),
        .model = c->model,
        .batch = of->batch,
        .length = of->length,
    };
    const struct dry_run run = {&execution, costing_list(of), of->options, action_done, layer_done, c};
    struct action_cost nothing = {0};
    add_since(c, &c->before_action, &nothing);
    c->before_layer = c->before_action;
    return execute_dry(&run);
}

int pass_costs_create(const struct costing *costing, struct pass_costs *out) {
    struct counting c;
    *out = (struct pass_costs){.actions = costing_list(costing)->count};
    int status = begin(&c, costing, out);
    if (!status) status = reserve_costs(out, costing->config->num_layers);
    if (!status) status = run(&c);
    end(&c);
    if (status) pass_costs_free(out);
    return status;
}

void pass_costs_free(struct pass_costs *costs) {
    free(costs->action);
    free(costs->layer);
    *costs = (struct pass_costs){0};
}
