/* A layer's delta connections: what is common to all kinds and aggregates (model.md, 2 to 5).
 *
 * With several tensor ranks each has a part of the connections (struct delta_part). Target and sources are
 * whole on all of them. Forward, the ranks' parts of the contributions are added, or put side by side, once a
 * layer. Backward, everything is linear in the gradient that comes in, so from its own part of the
 * connections each rank makes its terms of every gradient: those of the target are added once a layer, those
 * of the sources where they are collected, those of replicated weights once a step. */
#include "kernels/base/status.h"
#include "model/delta/private.h"

/* How this rank's contributions become those of all ranks. */
static enum gate_parts parts(const struct model *m) {
    if (m->tensor->size == 1) return PARTS_REPLICATED;
    return m->delta->part.channels ? m->delta->gate->parts : PARTS_SUMMED;
}

struct delta_pass begin_connections(struct model *m, const struct rule_layer *x, struct loss_sums *sums) {
    const struct loss_options *o = m->pass->options;
    struct delta_pass p = {.m = m, .x = x, .c = x->own, .source = m->delta->source, .sums = sums};
    find_active(&p);
    p.total = edge_set_measured(o->active, &m->edges);
    p.rows = m->T;
    p.works = p.n && (parts(m) != PARTS_REPLICATED || m->delta->part.leads);
    if (p.all) p.t = rule_input(m, x);
    for (int i = 0; i < p.all; i++) p.source[i] = find_source(m, p.source[i].edge);
    p.sparsity = m->gradients && p.total ? o->sparsity_weight * o->token_weight / (double)p.total : 0;
    p.entropy = m->gradients && p.total ? -o->entropy_weight * o->token_weight / (double)p.total : 0;
    p.measure = o->measure || p.sparsity || p.entropy;
    if (o->each) p.each = m->pass->connections;
    if (o->effects && m->ops->device->host) p.effects = m->pass->connections;
    if (p.sparsity && m->config.delta.regularizer == REGULARIZER_NONE) {
        pass_failed(m, gdn_fail(GDN_INTERNAL,
                                "a pass has a sparsity weight of %g, but the model's delta.regularizer is "
                                "none, so no memory is laid out for its gradient",
                                o->sparsity_weight));
        p.sparsity = 0;
    }
    return p;
}

/* z [R, D] += own rows of x [T, D]. */
static void add_own_rows(const struct model *m, const real *x, real *z) {
    m->ops->add(m->rows * m->config.hidden_size, own_rows(m, x), z);
}

/* Adds the weighted contributions to the own rows z [R, D]. */
static void contribute(struct delta_pass *p, real *z) {
    struct model *m = p->m;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.W;
    real *terms =
        m->delta->mean; /* this rank's; the kinds are done with the buffer before they write there */
    const struct gate *gate = m->delta->gate;
    switch (parts(m)) {
    case PARTS_REPLICATED:
        if (!m->rows_divided) {
            gate->contribute(p, true, z, D, 0);
            return;
        }
        m->ops->copy(T * D, p->t, terms);
        gate->contribute(p, true, terms, D, 0);
        m->ops->copy(m->rows * D, own_rows(m, terms), z);
        return;
    case PARTS_SIDE_BY_SIDE:
        gate->contribute(p, false, terms, W, 0);
        axis_gather_columns(m->tensor, terms, T, W, m->delta->difference);
        add_own_rows(m, m->delta->difference, z);
        return;
    case PARTS_SUMMED:
        if (p->n)
            gate->contribute(p, false, terms, D, 0);
        else
            m->ops->zero(T * D, terms);
        block_sum(m, terms);
        add_own_rows(m, terms, z);
        return;
    }
}

/* Fills c [T, all, D] with the weighted contributions, whole on all ranks. */
static void form_contributions(struct delta_pass *p, real *c) {
    struct model *m = p->m;
    const struct delta_part *part = &m->delta->part;
    long T = m->T, D = m->config.hidden_size, ld = p->all * D;
    const struct gate *gate = m->delta->gate;
    switch (parts(m)) {
    case PARTS_REPLICATED:
        gate->contribute(p, false, c, ld, D);
        return;
    case PARTS_SIDE_BY_SIDE:
        gate->contribute(p, false, m->delta->columns_c, p->all * part->W, part->W);
        axis_gather_columns(m->tensor, m->delta->columns_c, T * p->all, part->W, c);
        return;
    case PARTS_SUMMED:
        if (!part->channels) m->ops->zero(T * ld, c); /* connections of other ranks */
        if (p->n) gate->contribute(p, false, c, ld, D);
        axis_sum(m->tensor, c, T * ld);
        return;
    }
}

void connections_forward(struct model *m, const struct rule_layer *x, real *z, struct loss_sums *sums) {
    struct delta_pass p = begin_connections(m, x, sums);
    const struct aggregate *aggregate = m->delta->aggregate;
    normalize_forward(&p);
    weights_forward(&p);
    if (p.n) m->delta->gate->fill(&p, true);
    if (aggregate->combine) {
        form_contributions(&p, p.c->contribution);
        aggregate->combine(&p, z);
    } else {
        contribute(&p, z);
    }
}

void recompute_connections(struct model *m, const struct rule_layer *x) {
    struct delta_pass p = begin_connections(m, x, NULL);
    const struct aggregate *aggregate = m->delta->aggregate;
    bool full = x->policy == POLICY_FULL;
    p.recomputed = true;
    if (p.works || (full && p.n && (aggregate->combine || shares_maps(m)))) m->delta->gate->fill(&p, full);
    if (!full) return;
    if (p.works || m->rows_divided) weights_again(&p);
    if (!aggregate->combine) return;
    form_contributions(&p, p.c->contribution);
    if (aggregate->combine_again) aggregate->combine_again(&p);
}

void connections_backward(struct model *m, const struct rule_layer *x) {
    struct delta_pass p = begin_connections(m, x, NULL);
    long T = m->T, D = m->config.hidden_size;
    const struct gate *gate = m->delta->gate;
    const struct aggregate *aggregate = m->delta->aggregate;
    bool joins = p.works || (gate->maps && shares_maps(m));
    /* y's gradient is z's plus the connections': it grows in place where nothing reads z's any more, and
     * where it has no terms on other ranks. */
    bool in_place = m->tensor->size == 1 && (aggregate->combine || gate->in_place);
    p.dt = in_place ? m->g : m->delta->dt;
    if (!in_place) m->ops->zero(T * D, m->delta->dt);
    if (aggregate->combine) {
        aggregate->combine_back(&p, m->g, m->delta->dc);
        if (joins) gate->backward(&p, m->delta->dc, p.all * D, D);
    } else if (joins) {
        gate->backward(&p, m->g, D, 0);
    }
    measure_effects(&p);
    if (p.works || m->rows_divided) weights_backward(&p);
    if (in_place) return;
    block_sum(m, m->delta->dt);
    add_own_rows(m, m->delta->dt, stream_rows(m, m->g));
}
