#include "train/step/inquiry.h"
#include "train/step/private.h"

int executor_missing(const struct action *a, const char *what) {
    char words[160];
    action_words(a, words);
    return gdn_fail(GDN_INTERNAL, "the schedule is at fault: %s: its %s is not on this rank", words, what);
}

/* What a pass of an action reads and writes, but for its gradient. */
static struct pass pass_of(struct executor *x, const struct action *a) {
    struct pass pass = {
        .rows = (x->rows ? x->rows : x->step->rows) + a->micro * x->e.batch * (x->e.length + 1),
        .batch = executor_batch(x, a->micro),
        .length = x->e.length,
        .options = x->step->options,
        .connections = x->connections,
    };
    locations_of_pass(&x->locations, a, &pass);
    return pass;
}

/* ------------------------------------------------------------------------------------------- inquiries */

/* What a pass has computed. */
static void inquire_forward(struct executor *x, const struct action *a) {
    struct inquiry *inquiry = x->step->inquiry;
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    int first = span.first ? span.first : -1, slot = locations_slot(&x->locations, a->micro, a->chunk);
    if (inquiry->packed) first = span.end - 1;
    for (int node = first; node < span.end; node++) {
        long rows;
        const real *output =
            model_output_rows(x->e.model, a->chunk, slot, node, executor_rows(x, a->micro), &rows);
        inquiry_output(inquiry, a->micro, node, output, rows);
    }
}

static void inquire_backward(struct executor *x, const struct action *a, int layer, const real *gradient) {
    struct inquiry *inquiry = x->step->inquiry;
    if (layer == x->e.config->num_layers) inquiry_loss(inquiry, a->micro, &x->sums[a->micro]);
    inquiry_gradients(inquiry, a->micro, layer);
    if (layer >= 0) inquiry_stream(inquiry, a->micro, layer, gradient, executor_rows(x, a->micro));
}

/* ------------------------------------------------------------------------------------------- handlers */

/* What was sent from the slot whose contents change has to be gone. */
static void wait_for_slot(struct executor *x, int chunk, int slot) {
    transport_wait(x->transport, locations_slot_holder(&x->locations, chunk, slot));
}

int execute_forward(void *executor, const struct action *a) {
    struct executor *x = executor;
    wait_for_slot(x, a->chunk, a->slot);
    struct pass pass = pass_of(x, a);
    if (a->micro == 0) pass.watch = x->step->watch;
    if (pass.batch) model_stage_forward(x->e.model, &pass, &x->sums[a->micro]);
    if (pass.batch && x->step->inquiry) inquire_forward(x, a);
    return 0;
}

/* Between the layers of a backward pass: lets gradient sums under way move on, and, once a layer's gradients
 * are complete, sums those that are parts over the tensor axis, here on all tensor ranks (dist/sync/sync.h).
 */
static int between_layers(struct executor *x, int micro, int layer) {
    if (micro == x->in_step - 1) TRY(sync_partial(x->e.sync, layer, x->e.state->gradient));
    return sync_progress(x->e.sync);
}

int execute_backward(void *executor, const struct action *a) {
    struct executor *x = executor;
    struct span span = layout_span(x->layout, a->chunk, x->e.config->num_layers);
    struct pass pass = pass_of(x, a);
    pass.gradient = locations_held(&x->locations, CARGO_GRADIENT, a->micro, span.end - 1);
    if (!pass.gradient) return executor_missing(a, "gradient");
    if (pass.slot < 0) return executor_missing(a, "slot");
    for (int layer = a->layer; layer >= a->end; layer--) {
        if (pass.batch) model_stage_backward(x->e.model, &pass, layer, layer, &x->sums[a->micro]);
        if (pass.batch && x->step->inquiry) inquire_backward(x, a, layer, pass.gradient);
        TRY(between_layers(x, a->micro, layer));
    }
    if (locations_last_backward(&x->locations, a)) wait_for_slot(x, a->chunk, pass.slot);
    return 0;
}

int execute_project(void *executor, const struct action *a) {
    struct executor *x = executor;
    long T = executor_rows(x, a->micro);
    const real *s = locations_node(&x->locations, a->micro, x->edges->edge[a->index].source);
    if (!s) return executor_missing(a, "source");
    if (T) model_project(x->e.model, a->index, s, T, executor_buffer(x, a)->x);
    return 0;
}

int execute_unproject(void *executor, const struct action *a) {
    struct executor *x = executor;
    const struct locations *l = &x->locations;
    long T = executor_rows(x, a->micro);
    int source = x->edges->edge[a->index].source;
    const real *s = locations_node(l, a->micro, source);
    const real *gradient = locations_held(l, CARGO_EDGE_GRADIENT, a->micro, a->index);
    real *deposit = locations_held(l, CARGO_DEPOSIT, a->micro, source);
    if (!s || !gradient || !deposit)
        return executor_missing(a, !s ? "source" : !gradient ? "gradient" : "deposit");
    if (T) model_unproject(x->e.model, a->index, s, T, gradient, deposit);
    if (T && x->step->inquiry) inquiry_gradients(x->step->inquiry, a->micro, x->edges->edge[a->index].target);
    return 0;
}
