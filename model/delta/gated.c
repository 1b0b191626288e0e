/* What gates share that multiply δ' itself (gated.h). Where this rank has columns of the contributions alone,
 * these columns of t, s and dout are copied out. */
#include "model/base/dropout.h"
#include "model/delta/gated.h"

bool gated_measures(const struct delta_pass *p) {
    return p->measure && !p->recomputed;
}

bool gated_counts(const struct model *m) {
    return !m->delta->part.channels || m->delta->part.leads;
}

const real *gated_difference(const struct delta_pass *p, int i) {
    struct model *m = p->m;
    m->ops->delta_mean(m->T, m->config.hidden_size, p->t, own(p, i)->s, m->delta->difference, NULL);
    return m->delta->difference;
}

void gated_lay_out_scratch(struct model *m, long T, long n) {
    (void)n; /* one after the other */
    if (m->training && m->config.dropout.gate > 0)
        m->delta->kept = take(&m->scratch, T * largest(m->delta->part.W, m->config.delta.gate_hidden));
}

/* The gate as contributions have it: but for what training drops, in scratch. */
static const real *kept_gate(const struct delta_pass *p, int i, const struct gated *g) {
    struct model *m = p->m;
    if (!drops_gates(p)) return g->gate;
    drop_gates(p, i, g->gates, g->column, g->gate, g->gates, m->delta->kept);
    return m->delta->kept;
}

/* This rank's W columns of x (row distance ld), compact in scratch; x itself where they are all. */
static const real *own_columns(const struct model *m, long W, const real *x, long ld, real *scratch) {
    if (W == m->config.hidden_size) return x;
    m->ops->copy_columns(m->T, W, x + m->delta->part.column, ld, scratch, W);
    return scratch;
}

/* From the root mean squares of this rank's columns those of all columns. */
static void join_rms(const struct delta_pass *p) {
    const struct model *m = p->m;
    long count = p->n * m->T;
    m->ops->squares(count, p->c->rms);
    axis_sum_exact(m->tensor, p->c->rms, count);
    m->ops->root_means(count, m->tensor->size, p->c->rms);
}

void gated_contribute(struct delta_pass *p, const struct gated_row *row, bool add, real *out, long ldo,
                      long step) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = row->columns;
    const real *t = own_columns(m, W, p->t, D, m->delta->columns_t);
    for (int i = 0; i < p->n; i++) {
        struct gated g = row->gate(p, i);
        m->ops->gated_delta(T, W, g.gates, t, own_columns(m, W, own(p, i)->s, D, m->delta->columns_s),
                            kept_gate(p, i, &g), g.gates, row_factor(p, i), g.scale, c->weight + i, p->n,
                            add || (i && !step), out + p->mine->among[i] * step, ldo,
                            gated_measures(p) ? c->rms + i * T : NULL);
    }
    if (!gated_measures(p)) return;
    if (W < D) join_rms(p);
    for (int i = 0; m->counts && i < p->n; i++)
        m->ops->scale_connections(T, 1, 1, m->counts, c->rms + i * T, c->rms + i * T);
    if (!gated_counts(m)) return;
    m->ops->add_up(p->n * T, c->rms, &p->sums->sparsity);
    measure_contributions(p);
}

void gated_backward(struct delta_pass *p, const struct gated_row *row, const real *dout, long ldo, long step,
                    void (*gate_back)(struct delta_pass *p, int i, real *dd, real *k)) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = row->columns;
    const real *t = own_columns(m, W, p->t, D, m->delta->columns_t);
    for (int i = 0; p->works && i < p->n; i++) {
        struct gated g = row->gate(p, i);
        const real *s = own(p, i)->s, *r = row_factor(p, i), *di = dout + p->mine->among[i] * step;
        real *dd =
            m->delta->mean; /* gradient of δ_i; map_backward uses the buffer after the last connection */
        real *columns = W < D ? m->delta->columns_d : dd; /* of it, this rank's */
        m->ops->gated_delta_back(T, W, g.gates, t, own_columns(m, W, s, D, m->delta->columns_s),
                                 kept_gate(p, i, &g), g.gates, r, g.scale, c->weight + i, p->n,
                                 own_columns(m, W, di, ldo, m->delta->columns_out), W < D ? W : ldo,
                                 p->sparsity ? c->rms + i * T : NULL, p->sparsity * ((double)W / (double)D),
                                 m->delta->dweight + i, p->n, m->delta->dgate, columns, m->delta->dr);
        if (drops_gates(p)) drop_gates(p, i, g.gates, g.column, m->delta->dgate, g.gates, m->delta->dgate);
        if (W < D) {
            m->ops->zero(T * D, dd);
            m->ops->copy_columns(T, W, columns, W, dd + m->delta->part.column, D);
        }
        m->ops->zero(T, m->delta->k);
        gate_back(p, i, dd, m->delta->k);
        normalize_backward(p, i, m->delta->dr, m->delta->k);
        m->ops->delta_spread(T, D, dd, m->delta->k, p->t, s, p->dt, own(p, i)->ds);
    }
}
