/* The gates `full` and `adaptive` (model.md, 3), which multiply δ' itself: c = δ' ⊙ gate. `full`'s gate is as
 * wide as the model, σ(s(d) Wg δ'); `adaptive`'s is a softmax over channel groups, computed by a small MLP
 * from the magnitude of δ' and a projection of the mean.
 *
 * Where channels are divided among ranks, `full` has the rows of Wg for its columns of gate and contribution:
 * these columns of t, s and dout are copied out. `adaptive` is the same on all ranks and goes back on one. */
#include "model/delta/private.h"

static const real *form_delta(const struct delta_pass *p, int connection) {
    struct model *m = p->m;
    m->ops->delta_mean(m->T, m->config.hidden_size, p->t, own(p, connection)->s, m->delta->difference, NULL);
    return m->delta->difference;
}

/* Columns of the contributions that this rank has. */
static long width(const struct model *m) {
    return m->config.delta.kind == KIND_FULL ? m->delta->part.W : m->config.hidden_size;
}

/* These columns of x (row distance ld), compact in scratch; x itself where they are all. */
static const real *own_columns(const struct model *m, const real *x, long ld, real *scratch) {
    long W = width(m);
    if (W == m->config.hidden_size) return x;
    m->ops->copy_columns(m->T, W, x + m->delta->part.column, ld, scratch, W);
    return scratch;
}

/* ---------------------------------------------------------------------------------------------- full */

/* Does this pass add to the sums? */
static bool measures(const struct delta_pass *p) {
    return p->measure && !p->recomputed;
}

/* Fills the gate [T, W] of one connection. */
static void full_gate(struct delta_pass *p, int i, bool maps) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.W;
    real *x = c->p + i * T * W, *gate = c->gate + i * T * W;
    if (maps) m->ops->gemm('N', 'T', T, W, D, 1, form_delta(p, i), D, c->proj.w + i * W * D, D, 0, x, W);
    m->ops->sigmoid_gate(T, W, own(p, i)->edge->scale, row_factor(p, i), x, gate, W);
    if (!measures(p)) return;
    m->ops->binary_entropy(T, W, gate, W, 1 / (double)D, &p->sums->entropy);
    measure_gates(p, i, W, gate, W, NULL);
}

/* From the gate's gradient m->delta->dgate: adds the map's part to δ's gradient dd [T, D] and to dr. */
static void full_gate_back(struct delta_pass *p, int i, real *dd) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.W;
    m->ops->sigmoid_gate_back(T, W, own(p, i)->edge->scale, row_factor(p, i), c->p + i * T * W,
                              c->gate + i * T * W, W, p->entropy / (double)D, m->delta->dgate, W,
                              m->delta->dr);
    m->ops->gemm('N', 'N', T, D, W, 1, m->delta->dgate, W, c->proj.w + i * W * D, D, 1, dd, D);
    m->ops->gemm('T', 'N', W, D, T, 1, m->delta->dgate, W, form_delta(p, i), D, 1, c->proj.g + i * W * D, D);
}

/* ------------------------------------------------------------------------------------------ adaptive */

/* Does this rank count what it computes? */
static bool counts(const struct model *m) {
    return !m->delta->part.channels || m->delta->part.leads;
}

static void adaptive_magnitude(struct delta_pass *p, int i) {
    const struct model *m = p->m;
    long T = m->T;
    m->ops->delta_magnitude(T, m->config.hidden_size, p->t, own(p, i)->s, row_factor(p, i),
                            m->config.delta.epsilon, p->c->magnitude + i * T, 1, p->c->square + i * T);
}

/* Fills x and h of one connection's MLP [T, G] from its magnitude and the context of all connections, c->p
 * [T, n·G]. */
static void adaptive_hidden(struct delta_pass *p, int i) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, G = m->config.delta.gate_hidden, in = G + 1;
    const real *w1 = c->gate_in.w + i * G * in; /* [G, 1 + G]: magnitude, then context */
    real *x = c->x + i * T * G, *magnitude = c->magnitude + i * T;
    m->ops->gemm('N', 'T', T, G, 1, 1, magnitude, 1, w1, in, 0, x, G);
    m->ops->gemm('N', 'T', T, G, G, 1, c->p + i * G, p->n * G, w1 + 1, in, 1, x, G);
    m->ops->bias_silu(T, G, c->gate_in_bias.w + i * G, x, c->h + i * T * G);
}

/* Fills the gate [T, G] of one connection. */
static void adaptive_gate(struct delta_pass *p, int i, bool maps) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, G = m->config.delta.gate_hidden;
    real *h = c->h + i * T * G, *gate = c->gate + i * T * G;
    if (!p->recomputed) adaptive_magnitude(p, i);
    if (maps)
        adaptive_hidden(p, i);
    else
        m->ops->silu(T * G, c->x + i * T * G, h);
    m->ops->gemm('N', 'T', T, G, G, 1, h, G, c->gate_out.w + i * G * G, G, 0, gate, G);
    m->ops->softmax_gate(T, G, c->gate_out_bias.w + i * G, 1 / m->config.delta.temperature, gate, G);
    if (!measures(p) || !counts(m)) return;
    m->ops->softmax_entropy(T, G, gate, G, &p->sums->entropy);
    measure_gates(p, i, G, gate, G, NULL);
}

/* From the gate's gradient m->delta->dgate [T, G]: gradients of the MLP, of the context (into m->delta->dx
 * [T, n·G]), and of the magnitude: its part of δ's gradient goes to k [T] as a factor of δ, its part of r's
 * to dr. */
static void adaptive_gate_back(struct delta_pass *p, int i, real *k) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, G = m->config.delta.gate_hidden, in = G + 1;
    real *dz = m->delta->dgate, *dh = m->delta->dv; /* [T, G] each */
    const real *w1 = c->gate_in.w + i * G * in, *h = c->h + i * T * G, *magnitude = c->magnitude + i * T;
    real *g1 = c->gate_in.g + i * G * in, *dmagnitude = m->delta->ct;
    m->ops->softmax_gate_back(T, G, 1 / m->config.delta.temperature, c->gate + i * T * G, G, p->entropy, dz,
                              G);
    m->ops->add_column_sums(T, G, dz, G, c->gate_out_bias.g + i * G);
    m->ops->gemm('T', 'N', G, G, T, 1, dz, G, h, G, 1, c->gate_out.g + i * G * G, G);
    m->ops->gemm('N', 'N', T, G, G, 1, dz, G, c->gate_out.w + i * G * G, G, 0, dh, G);
    m->ops->silu_back(T * G, c->x + i * T * G, dh, dh);
    m->ops->add_column_sums(T, G, dh, G, c->gate_in_bias.g + i * G);
    m->ops->gemm('T', 'N', G, 1, T, 1, dh, G, magnitude, 1, 1, g1, in);
    m->ops->gemm('T', 'N', G, G, T, 1, dh, G, c->p + i * G, p->n * G, 1, g1 + 1, in);
    m->ops->gemm('N', 'N', T, 1, G, 1, dh, G, w1, in, 0, dmagnitude, 1);
    m->ops->gemm('N', 'N', T, G, G, 1, dh, G, w1 + 1, in, 0, m->delta->dx + i * G, p->n * G);
    m->ops->delta_magnitude_back(T, D, row_factor(p, i), magnitude, c->square + i * T, dmagnitude, k,
                                 m->delta->dr);
}

/* ---------------------------------------------------------------------------------------------- both */

/* How `gated_delta` is told about a connection's gate. */
struct gate {
    const real *gate; /* [T, width] */
    long width;
    double scale; /* s(d), where it is not inside the gate */
};

static struct gate gate_of(const struct delta_pass *p, int i) {
    const struct model *m = p->m;
    bool full = m->config.delta.kind == KIND_FULL;
    long gates = full ? m->delta->part.W : m->config.delta.gate_hidden;
    return (struct gate){p->c->gate + i * m->T * gates, gates, full ? 1.0 : own(p, i)->edge->scale};
}

/* From the root mean squares of this rank's columns those of all columns. */
static void join_rms(const struct delta_pass *p) {
    const struct model *m = p->m;
    long count = p->n * m->T;
    m->ops->squares(count, p->c->rms);
    axis_sum(m->tensor, p->c->rms, count);
    m->ops->root_means(count, m->tensor->size, p->c->rms);
}

void gated_fill(struct delta_pass *p, bool maps) {
    const struct delta_config *d = &p->m->config.delta;
    bool full = d->kind == KIND_FULL;
    if (maps && !full) means_forward(p, p->c->proj.w, p->c->p);
    for (int i = 0; i < p->n; i++) (full ? full_gate : adaptive_gate)(p, i, maps);
}

void gated_contribute(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, W = width(m);
    const real *t = own_columns(m, p->t, D, m->delta->columns_t);
    for (int i = 0; i < p->n; i++) {
        struct gate g = gate_of(p, i);
        m->ops->gated_delta(T, W, g.width, t, own_columns(m, own(p, i)->s, D, m->delta->columns_s), g.gate,
                            g.width, row_factor(p, i), g.scale, c->weight + i, p->n, add || (i && !step),
                            out + i * step, ldo, measures(p) ? c->rms + i * T : NULL);
    }
    if (!measures(p)) return;
    if (W < D) join_rms(p);
    if (!counts(m)) return;
    m->ops->add_up(p->n * T, c->rms, &p->sums->sparsity);
    measure_contributions(p);
}

void gated_backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct delta_config *d = &m->config.delta;
    long T = m->T, D = m->config.hidden_size, W = width(m);
    bool full = d->kind == KIND_FULL;
    const real *t = own_columns(m, p->t, D, m->delta->columns_t);
    for (int i = 0; p->works && i < p->n; i++) {
        struct gate g = gate_of(p, i);
        const real *s = own(p, i)->s, *r = row_factor(p, i), *di = dout + i * step;
        real *dd = m->delta->mean; /* gradient of δ_i; project_backward below uses the buffer after the last
                                      connection */
        real *columns = W < D ? m->delta->columns_d : dd; /* of it, this rank's */
        m->ops->gated_delta_back(T, W, g.width, t, own_columns(m, s, D, m->delta->columns_s), g.gate, g.width,
                                 r, g.scale, c->weight + i, p->n,
                                 own_columns(m, di, ldo, m->delta->columns_out), W < D ? W : ldo,
                                 p->sparsity ? c->rms + i * T : NULL, p->sparsity * ((double)W / (double)D),
                                 m->delta->dweight + i, p->n, m->delta->dgate, columns, m->delta->dr);
        if (W < D) {
            m->ops->zero(T * D, dd);
            m->ops->copy_columns(T, W, columns, W, dd + m->delta->part.column, D);
        }
        m->ops->zero(T, m->delta->k);
        if (full)
            full_gate_back(p, i, dd);
        else
            adaptive_gate_back(p, i, m->delta->k);
        normalize_backward(p, i, m->delta->dr, m->delta->k);
        m->ops->delta_spread(T, D, dd, m->delta->k, p->t, s, p->dt, own(p, i)->ds);
    }
    if (full) return;
    if (!p->works) m->ops->zero(T * p->n * d->gate_hidden, m->delta->dx);
    struct delta_pass part = means_sum(p, m->delta->dx);
    project_backward(&part, MAP_MEAN, c->proj, d->gate_hidden,
                     m->delta->dx + part.row0 * p->n * d->gate_hidden);
}
