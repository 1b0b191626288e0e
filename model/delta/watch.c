/* Shows a layer's active connections to whoever watches a forward pass (model.h, struct delta_watch). */
#include "kernels/base/status.h"
#include "model/delta/private.h"

/* This rank's gates of active connection i; NULL where another rank computes them. */
static void show_gate(const struct delta_pass *p, int i, struct delta_view *view) {
    for (int own = 0; own < p->n; own++)
        if (p->mine->among[own] == i) p->m->delta->gate->show(p, own, view);
}

/* From the device to the host, where those who watch look at it. */
static void bring(const struct model *m, struct delta_view *view) {
    const struct device *device = m->ops->device;
    if (device->host) return;
    device->download(m->delta->seen, view->difference, (size_t)(m->T * view->D) * sizeof(real));
    view->difference = m->delta->seen;
    if (!view->gate) return;
    size_t span = (size_t)((m->T - 1) * view->gate_ld + view->gates);
    device->download(m->delta->seen_gates, view->gate, span * sizeof(real));
    view->gate = m->delta->seen_gates;
}

void watch_connections(struct model *m, const struct rule_layer *x) {
    const struct delta_pass pass = begin_connections(m, x, NULL), *p = &pass;
    const struct delta_watch *watch = m->pass->watch;
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        struct delta_view view = {.edge = source->edge,
                                  .batch = m->B,
                                  .length = m->S,
                                  .D = m->config.hidden_size,
                                  .difference = m->delta->difference};
        if (!source->s) {
            pass_failed(m, gdn_fail(GDN_INTERNAL,
                                    "the connection from node %d to layer %d is watched, but its source came "
                                    "as a narrow projection",
                                    source->edge->source, source->edge->target));
            continue;
        }
        m->ops->delta_mean(m->T, view.D, p->t, source->s, m->delta->difference, NULL);
        show_gate(p, i, &view);
        bring(m, &view);
        watch->see(watch->context, &view);
    }
}
