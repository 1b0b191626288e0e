/* The gates `full` and `adaptive` (model.md, 3), which multiply δ' itself: c = δ' ⊙ gate. `full`'s gate is as
 * wide as the model, σ(s(d) Wg δ'); `adaptive`'s is a softmax over channel groups, computed by a small MLP
 * from the magnitude of δ' and a projection of the mean. */
#include "model/internal.h"

static const real *form_delta(const struct delta_pass *p, int slot) {
    struct model *m = p->m;
    m->ops->delta_mean(m->T, m->config.hidden_size, p->t, p->s[slot], m->delta, NULL);
    return m->delta;
}

/* ---------------------------------------------------------------------------------------------- full */

/* Fills the gate [T, D] of one slot. */
static void full_gate(struct delta_pass *p, int i) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size;
    real *x = c->p + i * T * D, *gate = c->gate + i * T * D;
    m->ops->gemm('N', 'T', T, D, D, 1, form_delta(p, i), D, c->proj.w + i * D * D, D, 0, x, D);
    m->ops->sigmoid_gate(T, D, c->edge[i].scale, row_factor(p, i), x, gate, D);
    if (p->measure) p->sums->entropy += m->ops->binary_entropy(T, D, gate, D) / (double)D;
}

/* From the gate's gradient m->dgate: adds the map's part to δ's gradient m->mean and to dr. */
static void full_gate_back(struct delta_pass *p, int i, real *dd) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size;
    m->ops->sigmoid_gate_back(T, D, c->edge[i].scale, row_factor(p, i), c->p + i * T * D, c->gate + i * T * D,
                              D, p->entropy / (double)D, m->dgate, D, m->dr);
    m->ops->gemm('N', 'N', T, D, D, 1, m->dgate, D, c->proj.w + i * D * D, D, 1, dd, D);
    m->ops->gemm('T', 'N', D, D, T, 1, m->dgate, D, form_delta(p, i), D, 1, c->proj.g + i * D * D, D);
}

/* ------------------------------------------------------------------------------------------ adaptive */

/* Fills the gate [T, G] of one slot; the context of all slots is in c->p [T, n·G]. */
static void adaptive_gate(struct delta_pass *p, int i) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, G = m->config.delta.gate_hidden, in = G + 1;
    const real *w1 = c->gate_in.w + i * G * in; /* [G, 1 + G]: magnitude, then context */
    real *x = c->x + i * T * G, *h = c->h + i * T * G, *gate = c->gate + i * T * G,
         *magnitude = c->magnitude + i * T;
    m->ops->delta_magnitude(T, D, p->t, p->s[i], row_factor(p, i), m->config.delta.epsilon, magnitude, 1,
                            c->square + i * T);
    m->ops->gemm('N', 'T', T, G, 1, 1, magnitude, 1, w1, in, 0, x, G);
    m->ops->gemm('N', 'T', T, G, G, 1, c->p + i * G, p->n * G, w1 + 1, in, 1, x, G);
    m->ops->bias_silu(T, G, c->gate_in_bias.w + i * G, x, h);
    m->ops->gemm('N', 'T', T, G, G, 1, h, G, c->gate_out.w + i * G * G, G, 0, gate, G);
    m->ops->softmax_gate(T, G, c->gate_out_bias.w + i * G, 1 / m->config.delta.temperature, gate, G);
    if (p->measure) p->sums->entropy += m->ops->softmax_entropy(T, G, gate, G);
}

/* From the gate's gradient m->dgate [T, G]: gradients of the MLP, of the context (into m->dx [T, n·G]), and
 * of the magnitude: its part of δ's gradient goes to k [T] as a factor of δ, its part of r's to dr. */
static void adaptive_gate_back(struct delta_pass *p, int i, real *k) {
    struct model *m = p->m;
    struct connections *c = p->c;
    long T = m->T, D = m->config.hidden_size, G = m->config.delta.gate_hidden, in = G + 1;
    real *dz = m->dgate, *dh = m->dv; /* [T, G] each */
    const real *w1 = c->gate_in.w + i * G * in, *h = c->h + i * T * G, *magnitude = c->magnitude + i * T;
    real *g1 = c->gate_in.g + i * G * in, *dmagnitude = m->ct;
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
    m->ops->gemm('N', 'N', T, G, G, 1, dh, G, w1 + 1, in, 0, m->dx + i * G, p->n * G);
    const real *r = row_factor(p, i), *square = c->square + i * T;
    for (long t = 0; t < T; t++) { /* magnitude = √(r²·mean(δ²) + ε) */
        real factor = r ? r[t] : 1, slope = dmagnitude[t] / magnitude[t];
        k[t] = slope * factor * factor / (real)D;
        if (r) m->dr[t] += slope * factor * square[t];
    }
}

/* ---------------------------------------------------------------------------------------------- both */

/* How `gated_delta` is told about a slot's gate. */
struct gate {
    const real *gate; /* [T, width] */
    long width;
    double scale; /* s(d), where it is not inside the gate */
};

static struct gate gate_of(const struct delta_pass *p, int i) {
    const struct delta_config *d = &p->m->config.delta;
    bool full = d->kind == KIND_FULL;
    long width = full ? p->m->config.hidden_size : d->gate_hidden;
    return (struct gate){p->c->gate + i * p->m->T * width, width, full ? 1.0 : p->c->edge[i].scale};
}

void gated_forward(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    const struct delta_config *d = &m->config.delta;
    long T = m->T, D = m->config.hidden_size;
    if (d->kind == KIND_ADAPTIVE) project_forward(p, MAP_MEAN, c->proj.w, d->gate_hidden, c->p);
    for (int i = 0; i < p->n; i++) {
        if (d->kind == KIND_FULL)
            full_gate(p, i);
        else
            adaptive_gate(p, i);
        struct gate g = gate_of(p, i);
        real *rms = p->measure ? c->rms + i * T : NULL;
        m->ops->gated_delta(T, D, g.width, p->t, p->s[i], g.gate, g.width, row_factor(p, i), g.scale,
                            c->weight + i, p->n, add, out + i * step, ldo, rms);
        for (long t = 0; rms && t < T; t++) p->sums->sparsity += rms[t];
    }
}

void gated_backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct delta_config *d = &m->config.delta;
    long T = m->T, D = m->config.hidden_size;
    for (int i = 0; i < p->n; i++) {
        struct gate g = gate_of(p, i);
        real *dd =
            m->mean; /* gradient of δ_i; project_backward below reuses the buffer after the last slot */
        const real *r = row_factor(p, i);
        m->ops->gated_delta_back(T, D, g.width, p->t, p->s[i], g.gate, g.width, r, g.scale, c->weight + i,
                                 p->n, dout + i * step, ldo, p->sparsity ? c->rms + i * T : NULL, p->sparsity,
                                 m->dweight + i, p->n, m->dgate, dd, m->dr);
        m->ops->zero(T, m->k);
        if (d->kind == KIND_FULL)
            full_gate_back(p, i, dd);
        else
            adaptive_gate_back(p, i, m->k);
        normalize_backward(p, i, m->dr, m->k);
        m->ops->delta_spread(T, D, dd, m->k, p->t, p->s[i], p->dt, p->ds[i]);
    }
    if (d->kind == KIND_ADAPTIVE) project_backward(p, MAP_MEAN, c->proj, d->gate_hidden, m->dx);
}
