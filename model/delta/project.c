/* Linear maps of a connection's difference δ = t − s or mean (s + t)/2, for all of a layer's connections.
 *
 * Direct: δ_i (or the mean) is formed and multiplied. Split: what reads t and s linearly splits, so the
 * target's half of all connections is one GEMM over the stacked weights and each source's half another
 * (model.md, 3). Split has twice the arithmetic and fewer passes over memory: it wins where the maps are
 * narrow against D. Of a source that came projected the half is there already. The pass may be one over own
 * rows alone. */
#include "model/delta/private.h"

/* Width of one map per hidden channel up to which split is faster: measured by `gdn bench --form`, see
 * train/benchmark/README.md. Fixed, not timed at start, so that a resumed run takes the same path. */
static const double SPLIT_BELOW = 0.125;

static bool split(const struct delta_pass *p, long width) {
    if (p->m->delta->projection_way != PROJECTION_AUTO)
        return p->m->delta->projection_way == PROJECTION_SPLIT;
    return (double)width <= SPLIT_BELOW * p->m->config.hidden_size;
}

/* The weights of target and source in a map. */
static real target_sign(enum map map) {
    return map == MAP_DIFFERENCE ? 1 : (real)0.5;
}
static real source_sign(enum map map) {
    return map == MAP_DIFFERENCE ? -1 : (real)0.5;
}

/* Where a map's source half of all tokens lies in a projected source. */
static long projected_half(const struct delta_pass *p, enum map map) {
    return projected_offset(p->m, p->m->T, map == MAP_DIFFERENCE ? PROJECTED_PROJ : PROJECTED_GATE_IN);
}

/* Forms a connection's δ or mean in scratch. */
static const real *form_input(const struct delta_pass *p, enum map map, int connection) {
    struct model *m = p->m;
    bool difference = map == MAP_DIFFERENCE;
    m->ops->delta_mean(p->rows, m->config.hidden_size, p->t, own(p, connection)->s,
                       difference ? m->delta->difference : NULL, difference ? NULL : m->delta->mean);
    return difference ? m->delta->difference : m->delta->mean;
}

void project_forward(struct delta_pass *p, enum map map, const real *w, long width, real *out) {
    const struct model *m = p->m;
    long T = p->rows, D = m->config.hidden_size, ld = p->n * width;
    bool halves = split(p, width);
    if (halves) m->ops->gemm('N', 'T', T, ld, D, target_sign(map), p->t, D, w, D, 0, out, ld);
    for (int i = 0; i < p->n; i++) {
        const struct source *source = own(p, i);
        const real *wi = w + i * width * D;
        real *oi = out + i * width;
        if (!source->s) {
            if (!halves) m->ops->gemm('N', 'T', T, width, D, target_sign(map), p->t, D, wi, D, 0, oi, ld);
            m->ops->add_columns(T, width, source_sign(map),
                                source->projected + projected_half(p, map) + p->row0 * width, width, oi, ld);
        } else if (halves) {
            m->ops->gemm('N', 'T', T, width, D, source_sign(map), source->s, D, wi, D, 1, oi, ld);
        } else {
            m->ops->gemm('N', 'T', T, width, D, 1, form_input(p, map, i), D, wi, D, 0, oi, ld);
        }
    }
}

/* The target's half of the connections whose maps are the `ld` … wide columns of dout. */
static void target_backward(struct delta_pass *p, enum map map, struct tensor w, long wide, const real *dout,
                            long ld) {
    struct model *m = p->m;
    long T = p->rows, D = m->config.hidden_size;
    m->ops->gemm('N', 'N', T, D, wide, target_sign(map), dout, ld, w.w, D, 1, p->dt, D);
    m->ops->gemm('T', 'N', wide, D, T, target_sign(map), dout, ld, p->t, D, 1, w.g, D);
}

/* Both halves of one connection by way of its δ or mean. */
static void direct_backward(struct delta_pass *p, enum map map, int i, struct tensor w, long width,
                            const real *di, long ld) {
    struct model *m = p->m;
    long T = p->rows, D = m->config.hidden_size;
    const struct source *source = own(p, i);
    m->ops->gemm('T', 'N', width, D, T, 1, di, ld, form_input(p, map, i), D, 1, w.g, D);
    real *d = m->delta->difference; /* the input is used up: its gradient takes its place */
    m->ops->gemm('N', 'N', T, D, width, target_sign(map), di, ld, w.w, D, 0, d, D);
    if (map == MAP_DIFFERENCE) {
        m->ops->delta_spread(T, D, d, NULL, p->t, source->s, p->dt, source->ds);
    } else {
        m->ops->add(T * D, d, p->dt);
        m->ops->add(T * D, d, source->ds);
    }
}

void project_backward(struct delta_pass *p, enum map map, struct tensor w, long width, const real *dout) {
    struct model *m = p->m;
    long T = p->rows, D = m->config.hidden_size, ld = p->n * width;
    bool halves = split(p, width);
    if (halves) target_backward(p, map, w, ld, dout, ld);
    for (int i = 0; i < p->n; i++) {
        const struct source *source = own(p, i);
        const real *di = dout + i * width;
        struct tensor wi = {w.w + i * width * D, w.g + i * width * D};
        if (!source->s) {
            real *half = source->projected_gradient + projected_half(p, map);
            if (!halves) target_backward(p, map, wi, width, di, ld);
            m->ops->zero(m->T * width, half); /* of other ranks' rows these are all the terms */
            m->ops->add_columns(T, width, source_sign(map), di, ld, half + p->row0 * width, width);
        } else if (halves) {
            m->ops->gemm('N', 'N', T, D, width, source_sign(map), di, ld, wi.w, D, 1, source->ds, D);
            m->ops->gemm('T', 'N', width, D, T, source_sign(map), di, ld, source->s, D, 1, wi.g, D);
        } else {
            direct_backward(p, map, i, wi, width, di, ld);
        }
    }
}

void means_forward(struct delta_pass *p, const real *w, real *out) {
    const struct model *m = p->m;
    long G = m->config.delta.gate_hidden;
    struct delta_pass part = shares_means(m) ? on_own_rows(p) : *p;
    project_forward(&part, MAP_MEAN, w, G, out + part.row0 * p->n * G);
    if (shares_means(m)) axis_gather_rows(m->tensor, out, m->T, p->n * G);
}

struct delta_pass means_sum(struct delta_pass *p, real *dout) {
    const struct model *m = p->m;
    if (!shares_means(m)) return *p;
    axis_sum_rows(m->tensor, dout, m->T, p->n * m->config.delta.gate_hidden);
    return on_own_rows(p);
}
