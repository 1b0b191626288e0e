/* What a connection reads of its source, and where it leaves the source's gradient. */
#include "model/delta/private.h"

/* [R] inverse rms of each own row of a node's output, for selection. Of a node whose next layer is in the
 * chunk it is that layer's first norm's, else it is computed once a micro-batch, with the same bits. */
static const real *node_rstd(struct model *m, int node) {
    real *rstd = m->activation_set->rstd[1 + node];
    if (!rstd) return m->layer[node + 1].rstd1; /* the layer above normalises the node's output */
    if (!m->activation_set->rstd_known[1 + node])
        m->ops->row_rstd(m->rows, m->config.hidden_size, node_rows(m, node), m->config.norm_eps, rstd);
    m->activation_set->rstd_known[1 + node] = true;
    return rstd;
}

struct source find_source(struct model *m, const struct edge *edge) {
    const struct pass *pass = m->pass;
    long e = edge - m->edges.edge;
    struct source i = {.edge = edge, .s = node_output(m, edge->source)};
    bool selects = m->config.delta.aggregate == AGGREGATE_ATTENTION;
    if (i.s) {
        if (selects) i.rs = node_rstd(m, edge->source);
        i.ds = m->gradients ? source_gradient_of(m, edge->source) : NULL;
    } else {
        i.projected = pass->projected[e];
        i.projected_gradient = pass->projected_gradient ? pass->projected_gradient[e] : NULL;
        if (selects) i.rs = i.projected + projected_rstd(m, m->T) + m->row0;
    }
    return i;
}

struct delta_pass on_own_rows(const struct delta_pass *p) {
    const struct model *m = p->m;
    struct delta_pass own = *p;
    if (!m->rows_divided) return own;
    own.source = m->delta->own_source;
    own.row0 = m->row0, own.rows = m->rows;
    own.t = own_rows(m, p->t);
    if (p->dt) own.dt = own_rows(m, p->dt);
    for (int i = 0; i < p->all; i++) {
        struct source *source = &own.source[i];
        *source = p->source[i];
        if (source->s) source->s = own_rows(m, source->s);
        if (source->ds) source->ds = own_rows(m, source->ds);
    }
    return own;
}
