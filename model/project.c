/* Linear maps of a connection's difference δ = t − s or mean (s + t)/2, for all slots of a layer.
 *
 * Direct: δ_i (or the mean) is formed and multiplied. Split: what reads t and s linearly splits, so the
 * target's half of all slots is one GEMM over the stacked weights and each source's half another (model.md,
 * 3). Split has twice the arithmetic and fewer passes over memory: it wins where the maps are narrow against
 * D. */
#include "model/internal.h"

/* Rows of one map per hidden channel up to which split is faster: measured by `gdn bench --form`, see
 * train/benchmark/README.md. Fixed, not timed at start, so that a resumed run takes the same path. */
static const double SPLIT_BELOW = 0.125;

static bool split(const struct delta_pass *p, long rows) {
    if (p->m->form != FORM_AUTO) return p->m->form == FORM_SPLIT;
    return (double)rows <= SPLIT_BELOW * p->m->config.hidden_size;
}

/* The weights of target and source in a map. */
static real target_sign(enum map map) {
    return map == MAP_DIFFERENCE ? 1 : (real)0.5;
}
static real source_sign(enum map map) {
    return map == MAP_DIFFERENCE ? -1 : (real)0.5;
}

/* Forms a slot's δ or mean in scratch. */
static const real *form_input(const struct delta_pass *p, enum map map, int slot) {
    struct model *m = p->m;
    bool difference = map == MAP_DIFFERENCE;
    m->ops->delta_mean(m->T, m->config.hidden_size, p->t, p->s[slot], difference ? m->delta : NULL,
                       difference ? NULL : m->mean);
    return difference ? m->delta : m->mean;
}

void project_forward(struct delta_pass *p, enum map map, const real *w, long rows, real *out) {
    const struct model *m = p->m;
    long T = m->T, D = m->config.hidden_size, ld = p->n * rows;
    bool halves = split(p, rows);
    if (halves) m->ops->gemm('N', 'T', T, ld, D, target_sign(map), p->t, D, w, D, 0, out, ld);
    for (int i = 0; i < p->n; i++) {
        const real *wi = w + i * rows * D;
        if (halves)
            m->ops->gemm('N', 'T', T, rows, D, source_sign(map), p->s[i], D, wi, D, 1, out + i * rows, ld);
        else
            m->ops->gemm('N', 'T', T, rows, D, 1, form_input(p, map, i), D, wi, D, 0, out + i * rows, ld);
    }
}

void project_backward(struct delta_pass *p, enum map map, struct tensor w, long rows, const real *dout) {
    struct model *m = p->m;
    long T = m->T, D = m->config.hidden_size, ld = p->n * rows;
    bool halves = split(p, rows);
    if (halves) {
        m->ops->gemm('N', 'N', T, D, ld, target_sign(map), dout, ld, w.w, D, 1, p->dt, D);
        m->ops->gemm('T', 'N', ld, D, T, target_sign(map), dout, ld, p->t, D, 1, w.g, D);
    }
    for (int i = 0; i < p->n; i++) {
        const real *di = dout + i * rows, *wi = w.w + i * rows * D;
        real *gi = w.g + i * rows * D;
        if (halves) {
            m->ops->gemm('N', 'N', T, D, rows, source_sign(map), di, ld, wi, D, 1, p->ds[i], D);
            m->ops->gemm('T', 'N', rows, D, T, source_sign(map), di, ld, p->s[i], D, 1, gi, D);
            continue;
        }
        m->ops->gemm('T', 'N', rows, D, T, 1, di, ld, form_input(p, map, i), D, 1, gi, D);
        real *d = m->delta; /* the input is used up: its gradient takes its place */
        m->ops->gemm('N', 'N', T, D, rows, target_sign(map), di, ld, wi, D, 0, d, D);
        if (map == MAP_DIFFERENCE) {
            m->ops->delta_spread(T, D, d, NULL, p->t, p->s[i], p->dt, p->ds[i]);
        } else {
            m->ops->add(T * D, d, p->dt);
            m->ops->add(T * D, d, p->ds[i]);
        }
    }
}
