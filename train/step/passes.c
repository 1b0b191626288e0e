#include "train/step/dry_run.h"
#include "train/step/nan_trace.h"
#include "train/step/private.h"

int executor_missing(const struct action *a, const char *what) {
    char text[160];
    action_text(a, text);
    return gdn_fail(GDN_INTERNAL, "the schedule is at fault: %s: its %s is not on this rank", text, what);
}

/* What a pass of an action reads and writes, but for its gradient. */
static struct pass pass_of(struct executor *x, const struct action *a) {
    struct pass pass = {
        .rows = (x->rows ? x->rows : x->step->rows) + a->micro_batch * x->e.batch * (x->e.length + 1),
        .batch = executor_batch(x, a->micro_batch),
        .length = x->e.length,
        .sequence = x->step->first + a->micro_batch * x->e.batch / pieces_each(executor_context(x)),
        .options =
            x->step->second && a->micro_batch >= x->step->second_from ? x->step->second : x->step->options,
        .connections = x->connections,
    };
    if (x->step->whole)
        pass.whole = (x->whole ? x->whole : x->step->whole) + executor_whole(x, a->micro_batch * x->e.batch);
    locations_of_pass(&x->locations, a, &pass);
    return pass;
}

/* ------------------------------------------------------------------------------------------- NaN traces */

static void trace_output(struct executor *x, const struct action *a, int node) {
    int activation_set = locations_activation_set(&x->locations, a->micro_batch, a->chunk);
    long rows;
    const real *output = model_output_rows(x->e.model, a->chunk, activation_set, node,
                                           executor_rows(x, a->micro_batch), &rows);
    nan_trace_output(x->step->nan_trace, a->micro_batch, node, output, rows);
}

/* What a pass has computed, but for layers' outputs that are factors by now (behind_layer). */
static void trace_forward(struct executor *x, const struct action *a) {
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    int end = x->step->nan_trace->compressed ? 0 : span.end;
    for (int node = span.first ? span.first : -1; node < end; node++) trace_output(x, a, node);
}

static void trace_backward(struct executor *x, const struct action *a, int layer, const real *gradient) {
    struct nan_trace *nan_trace = x->step->nan_trace;
    if (layer == x->e.config->num_layers) nan_trace_loss(nan_trace, a->micro_batch, &x->sums[a->micro_batch]);
    nan_trace_gradients(nan_trace, a->micro_batch, layer);
    if (layer >= 0)
        nan_trace_stream(nan_trace, a->micro_batch, layer, gradient, executor_rows(x, a->micro_batch));
}

/* ------------------------------------------------------------------------------------------- handlers */

/* What was sent from the activation set whose contents change has to be gone. */
static void wait_for_activation_set(struct executor *x, int chunk, int activation_set) {
    transport_wait(x->transport, locations_activation_set_owner(&x->locations, chunk, activation_set));
}

struct forward {
    struct executor *x;
    const struct action *a;
};

/* Between the layers of a forward pass. */
static void behind_layer(void *caller, int layer) {
    const struct forward *f = caller;
    const struct nan_trace *nan_trace = f->x->step->nan_trace;
    if (nan_trace && nan_trace->compressed) trace_output(f->x, f->a, layer);
    transport_progress(f->x->transport);
}

int execute_forward(void *executor, const struct action *a) {
    struct executor *x = executor;
    wait_for_activation_set(x, a->chunk, a->activation_set);
    struct pass pass = pass_of(x, a);
    if (a->micro_batch == 0) pass.watch = x->step->watch;
    pass.heads = x->step->heads;
    pass.behind_layer = behind_layer, pass.caller = &(struct forward){x, a};
    if (pass.batch) model_stage_forward(x->e.model, &pass, &x->sums[a->micro_batch]);
    if (pass.batch && x->step->nan_trace) trace_forward(x, a);
    return 0;
}

/* Between the layers of a backward pass, or of the gradients of weights that it has left: once a layer's
 * gradients are complete, sums those that are parts over the tensor axis, here on all tensor ranks
 * (dist/sync/sync.h); then what is under way moves on. `waits`: for gradients that are left. */
static int between_layers(struct executor *x, int micro_batch, int layer, bool waits) {
    if (x->dry) {
        x->dry->layer(x->dry->context, layer);
        return 0;
    }
    if (micro_batch == x->in_step - 1 && !waits) TRY(sync_partial(x->e.sync, layer, x->e.state->gradient));
    transport_progress(x->transport);
    return sync_progress(x->e.sync);
}

int execute_backward(void *executor, const struct action *a) {
    struct executor *x = executor;
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    struct pass pass = pass_of(x, a);
    pass.gradient = locations_held(&x->locations, PAYLOAD_STREAM_GRADIENT, a->micro_batch, span.end - 1);
    if (!pass.gradient) return executor_missing(a, "gradient");
    if (pass.activation_set < 0) return executor_missing(a, "activation set");
    pass.weight_set = 1 + a->weight_set;
    for (int layer = a->layer; layer >= a->end; layer--) {
        if (pass.batch) model_stage_backward(x->e.model, &pass, layer, layer, &x->sums[a->micro_batch]);
        if (pass.batch && x->step->nan_trace) trace_backward(x, a, layer, pass.gradient);
        TRY(between_layers(x, a->micro_batch, layer, a->weight_set >= 0));
    }
    if (locations_last_backward(&x->locations, a)) wait_for_activation_set(x, a->chunk, pass.activation_set);
    return 0;
}

int execute_weights(void *executor, const struct action *a) {
    struct executor *x = executor;
    const bool empty = !executor_batch(x, a->micro_batch);
    for (int layer = a->layer; layer >= a->end; layer--) {
        if (!empty) model_stage_weights(x->e.model, a->weight_set, layer);
        if (!empty && x->step->nan_trace) nan_trace_gradients(x->step->nan_trace, a->micro_batch, layer);
        TRY(between_layers(x, a->micro_batch, layer, false));
    }
    return 0;
}

int execute_project(void *executor, const struct action *a) {
    struct executor *x = executor;
    long T = executor_rows(x, a->micro_batch);
    const real *s = locations_source(&x->locations, a->micro_batch, x->edges->edge[a->index].source);
    if (!s) return executor_missing(a, "source");
    if (T) model_project(x->e.model, a->index, s, T, executor_buffer(x, a)->x);
    return 0;
}

int execute_unproject(void *executor, const struct action *a) {
    struct executor *x = executor;
    const struct locations *l = &x->locations;
    long T = executor_rows(x, a->micro_batch);
    int source = x->edges->edge[a->index].source;
    const real *s = locations_source(l, a->micro_batch, source);
    const real *gradient = locations_held(l, PAYLOAD_PROJECTED_GRADIENT, a->micro_batch, a->index);
    real *source_gradient = locations_held(l, PAYLOAD_SOURCE_GRADIENT, a->micro_batch, source);
    if (!s || !gradient || !source_gradient)
        return executor_missing(a, !s ? "source" : !gradient ? "gradient" : "source gradient");
    if (T) model_unproject(x->e.model, a->index, s, T, gradient, source_gradient);
    if (T && x->step->nan_trace)
        nan_trace_gradients(x->step->nan_trace, a->micro_batch, x->edges->edge[a->index].target);
    return 0;
}
