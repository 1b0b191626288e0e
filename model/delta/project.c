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

void model_set_projection(struct model *model, enum projection_way projection) {
    if (model->delta) model->delta->projection_way = projection;
}

static bool split(const struct delta_pass *p, long width) {
    if (p->m->delta->projection_way != PROJECTION_AUTO)
        return p->m->delta->projection_way == PROJECTION_SPLIT;
    return (double)width <= SPLIT_BELOW * p->m->config.hidden_size;
}

/* The weights of target and source in a map. */
static real target_sign(enum map_of of) {
    return of == MAP_DIFFERENCE ? 1 : (real)0.5;
}
static real source_sign(enum map_of of) {
    return of == MAP_DIFFERENCE ? -1 : (real)0.5;
}

/* Where a map's source half of all tokens lies in a projected source. */
static long projected_half(const struct delta_pass *p, int map) {
    return projected_offset(p->m, p->m->T, map);
}

/* The pass that computes a map: all rows, or where all ranks would compute the same its own. */
static struct delta_pass map_pass(struct delta_pass *p, int map) {
    return p->m->delta->map[map].shared ? on_own_rows(p) : *p;
}

/* Forms a connection's δ or mean in scratch. */
static const real *form_input(const struct delta_pass *p, enum map_of of, int connection) {
    struct model *m = p->m;
    bool difference = of == MAP_DIFFERENCE;
    m->ops->delta_mean(p->rows, m->config.hidden_size, p->t, own(p, connection)->s,
                       difference ? m->delta->difference : NULL, difference ? NULL : m->delta->mean);
    return difference ? m->delta->difference : m->delta->mean;
}

static void project_forward(struct delta_pass *p, int map, real *out) {
    const struct model *m = p->m;
    const struct map_part *part = &m->delta->map[map];
    enum map_of of = part->of;
    struct tensor w = p->c->leaf[part->leaf];
    long T = p->rows, D = m->config.hidden_size, width = part->width, ld = p->n * width;
    bool halves = split(p, width);
    for (int i = 0, n; halves && i < p->n; i += n) {
        n = neighbours(p, i);
        m->ops->gemm('N', 'T', T, n * width, D, target_sign(of), p->t, D, own_tensor(p, w, i, width * D).w, D,
                     0, out + i * width, ld);
    }
    for (int i = 0; i < p->n; i++) {
        const struct source *source = own(p, i);
        const real *wi = own_tensor(p, w, i, width * D).w;
        real *oi = out + i * width;
        if (!source->s) {
            if (!halves) m->ops->gemm('N', 'T', T, width, D, target_sign(of), p->t, D, wi, D, 0, oi, ld);
            m->ops->add_columns(T, width, source_sign(of),
                                source->projected + projected_half(p, map) + p->row0 * width, width, oi, ld);
        } else if (halves) {
            m->ops->gemm('N', 'T', T, width, D, source_sign(of), source->s, D, wi, D, 1, oi, ld);
        } else {
            m->ops->gemm('N', 'T', T, width, D, 1, form_input(p, of, i), D, wi, D, 0, oi, ld);
        }
    }
}

void map_forward(struct delta_pass *p, int map, real *out) {
    const struct model *m = p->m;
    const struct map_part *part = &m->delta->map[map];
    struct delta_pass pass = map_pass(p, map);
    project_forward(&pass, map, out + pass.row0 * p->n * part->width);
    if (part->shared) axis_gather_rows(m->tensor, out, m->T, p->n * part->width);
}

/* The target's half of the connections whose maps are the `ld` … wide columns of dout. */
static void target_backward(struct delta_pass *p, enum map_of of, struct tensor w, long wide,
                            const real *dout, long ld) {
    struct model *m = p->m;
    long T = p->rows, D = m->config.hidden_size;
    m->ops->gemm('N', 'N', T, D, wide, target_sign(of), dout, ld, w.w, D, 1, p->dt, D);
    weight_gradient_again(m, wide, D, T, target_sign(of), dout, ld, p->t, D, w.g, D);
}

/* Both halves of one connection by way of its δ or mean. */
static void direct_backward(struct delta_pass *p, enum map_of of, int i, struct tensor w, long width,
                            const real *di, long ld) {
    struct model *m = p->m;
    long T = p->rows, D = m->config.hidden_size;
    const struct source *source = own(p, i);
    weight_gradient(m, NO_WEIGHT_ID, width, D, T, 1, di, ld, form_input(p, of, i), D, w.g, D);
    real *d = m->delta->difference; /* the input is used up: its gradient takes its place */
    m->ops->gemm('N', 'N', T, D, width, target_sign(of), di, ld, w.w, D, 0, d, D);
    if (of == MAP_DIFFERENCE) {
        m->ops->delta_spread(T, D, d, NULL, p->t, source->s, p->dt, source->ds);
    } else {
        m->ops->add(T * D, d, p->dt);
        m->ops->add(T * D, d, source->ds);
    }
}

void map_backward(struct delta_pass *p, int map, const real *dout) {
    struct model *m = p->m;
    const struct map_part *part = &m->delta->map[map];
    enum map_of of = part->of;
    struct tensor w = p->c->leaf[part->leaf];
    long T = p->rows, D = m->config.hidden_size, width = part->width, ld = p->n * width;
    bool halves = split(p, width);
    for (int i = 0, n; halves && i < p->n; i += n) {
        n = neighbours(p, i);
        target_backward(p, of, own_tensor(p, w, i, width * D), n * width, dout + i * width, ld);
    }
    for (int i = 0; i < p->n; i++) {
        const struct source *source = own(p, i);
        const real *di = dout + i * width;
        struct tensor wi = own_tensor(p, w, i, width * D);
        if (!source->s) {
            real *half = source->projected_gradient + projected_half(p, map);
            if (!halves) target_backward(p, of, wi, width, di, ld);
            m->ops->zero(m->T * width, half); /* of other ranks' rows these are all the terms */
            m->ops->add_columns(T, width, source_sign(of), di, ld, half + p->row0 * width, width);
        } else if (halves) {
            m->ops->gemm('N', 'N', T, D, width, source_sign(of), di, ld, wi.w, D, 1, source->ds, D);
            weight_gradient_again(m, width, D, T, source_sign(of), di, ld, source->s, D, wi.g, D);
        } else {
            direct_backward(p, of, i, wi, width, di, ld);
        }
    }
}

struct delta_pass map_sum(struct delta_pass *p, int map, real *dout) {
    const struct map_part *part = &p->m->delta->map[map];
    if (part->shared) axis_sum_rows(p->m->tensor, dout, p->m->T, p->n * part->width);
    return map_pass(p, map);
}
