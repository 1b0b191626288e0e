/* A layer's delta connections: what is common to all kinds and aggregates (model.md, 2 to 5). */
#include "model/internal.h"

/* The kinds of gate; another rule between layers is another row. */
static const struct {
    void (*forward)(struct delta_pass *, bool, real *, long, long);
    void (*backward)(struct delta_pass *, const real *, long, long);
} kinds[] = {
    [KIND_BOTTLENECK] = {bottleneck_forward, bottleneck_backward},
    [KIND_FULL] = {gated_forward, gated_backward},
    [KIND_ADAPTIVE] = {gated_forward, gated_backward},
};

/* Active edges of the whole model: what the regularisers average over. */
static int total_edges(const struct model *m, int active) {
    int total = 0;
    for (int l = 0; l < m->config.num_layers; l++) total += active_edges(&m->edges, l, active);
    return total;
}

static struct delta_pass start(struct model *m, int layer, const struct loss_options *o,
                               struct loss_sums *sums) {
    struct delta_pass p = {.m = m, .c = &m->layer[layer].connections, .options = o, .sums = sums};
    p.n = active_edges(&m->edges, layer, o->active);
    p.total = total_edges(m, o->active);
    p.t = m->layer[layer].y;
    for (int i = 0; i < p.n; i++) {
        int source = p.c->edge[i].source;
        p.s[i] = node_output(m, source);
        p.rs[i] = m->layer[source + 1].rstd1; /* the layer above a node normalises that node's output */
        p.ds[i] = m->deposit ? m->deposit[source + 1] : NULL;
    }
    p.sparsity = m->gradients && p.total ? o->sparsity_weight * o->token_weight / p.total : 0;
    p.entropy = m->gradients && p.total ? -o->entropy_weight * o->token_weight / p.total : 0;
    p.measure = o->measure || p.sparsity || p.entropy;
    return p;
}

void connections_forward(struct model *m, int layer, const struct loss_options *options,
                         struct loss_sums *sums) {
    struct layer *l = &m->layer[layer];
    if (!l->connections.n) return;
    struct delta_pass p = start(m, layer, options, sums);
    long T = m->T, D = m->config.hidden_size;
    m->ops->copy(T * D, l->y, l->z);
    if (!p.n) return;
    normalize_forward(&p);
    aggregate_forward(&p);
    if (m->config.delta.aggregate == AGGREGATE_MULTIHEAD) {
        kinds[m->config.delta.kind].forward(&p, false, l->connections.c, p.n * D, D);
        multihead_forward(&p, l->z);
    } else {
        kinds[m->config.delta.kind].forward(&p, true, l->z, D, 0);
    }
}

void connections_backward(struct model *m, int layer, const struct loss_options *options) {
    struct layer *l = &m->layer[layer];
    if (!l->connections.n) return;
    struct delta_pass p = start(m, layer, options, NULL);
    if (!p.n) return;
    long T = m->T, D = m->config.hidden_size;
    bool multihead = m->config.delta.aggregate == AGGREGATE_MULTIHEAD;
    /* y's gradient is z's plus the connections': it grows in place where nothing reads z's any more. */
    bool in_place = multihead || m->config.delta.kind == KIND_BOTTLENECK;
    p.dt = in_place ? m->g : m->dt;
    if (!in_place) m->ops->zero(T * D, m->dt);
    if (multihead) {
        multihead_backward(&p, m->g);
        kinds[m->config.delta.kind].backward(&p, m->dc, p.n * D, D);
    } else {
        kinds[m->config.delta.kind].backward(&p, m->g, D, 0);
    }
    aggregate_backward(&p);
    if (!in_place) m->ops->add(T * D, m->dt, m->g);
}
