/* What a connection reads of its source, and where it leaves the source's gradient. */
#include "model/delta/private.h"

/* [R] inverse rms of each own row of a node's output. Of a node whose next layer is in the
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
    bool rms = m->delta->aggregate->rms;
    if (i.s) {
        if (rms) i.rs = node_rstd(m, edge->source);
        i.ds = m->gradients ? source_gradient_of(m, edge->source) : NULL;
    } else {
        i.projected = pass->projected[e];
        i.projected_gradient = pass->projected_gradient ? pass->projected_gradient[e] : NULL;
        if (rms) i.rs = i.projected + projected_offset(m, m->T, rms_block(m)) + m->row0;
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

/* What a projected source has in place of the map, of all tokens. */
static long map_offset(const struct delta_pass *p, int map) {
    return projected_offset(p->m, p->m->T, aggregate_block(p->m, map));
}

void map_sources(const struct delta_pass *p, int map, real *out) {
    const struct model *m = p->m;
    const struct map_part *part = &m->delta->map[aggregate_block(m, map)];
    const real *w = p->c->layer_leaf[part->leaf].w;
    long T = p->rows, D = m->config.hidden_size, width = part->width, ld = p->all * width;
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        real *oi = out + i * width;
        if (source->s)
            m->ops->gemm('N', 'T', T, width, D, 1, source->s, D, w, D, 0, oi, ld);
        else
            m->ops->copy_columns(T, width, source->projected + map_offset(p, map) + p->row0 * width, width,
                                 oi, ld);
    }
}

/* The pass's rows of d [rows, width] as a block of a projected source's gradient: of other rows these are all
 * the terms. */
static void put_block(const struct delta_pass *p, const real *d, long ld, long width, real *block) {
    const struct model *m = p->m;
    m->ops->zero(m->T * width, block);
    m->ops->copy_columns(p->rows, width, d, ld, block + p->row0 * width, width);
}

void map_sources_back(const struct delta_pass *p, int map, const real *dout) {
    struct model *m = p->m;
    const struct map_part *part = &m->delta->map[aggregate_block(m, map)];
    struct tensor w = p->c->layer_leaf[part->leaf];
    long T = p->rows, D = m->config.hidden_size, width = part->width, ld = p->all * width;
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        const real *di = dout + i * width;
        if (source->s) {
            m->ops->gemm('N', 'N', T, D, width, 1, di, ld, w.w, D, 1, source->ds, D);
            weight_gradient_again(m, width, D, T, 1, di, ld, source->s, D, w.g, D);
        } else {
            put_block(p, di, ld, width, source->projected_gradient + map_offset(p, map));
        }
    }
}

void source_rms_back(const struct delta_pass *p, const real *k) {
    const struct model *m = p->m;
    for (int i = 0; i < p->all; i++) {
        const struct source *source = &p->source[i];
        const real *ki = k + i * p->rows;
        if (source->s)
            m->ops->add_scaled_rows(p->rows, m->config.hidden_size, ki, source->s, source->ds);
        else
            put_block(p, ki, 1, 1, source->projected_gradient + projected_offset(m, m->T, rms_block(m)));
    }
}
