/* The gate `bottleneck` (model.md, 3): u = Wp δ, g = σ(W2 silu(W1 (s+t)/2 + b1) + b2), c = Wo (u ⊙ s(d) g).
 *
 * All connections of a layer are computed side by side in [T, n·Hd]; the weights of the aggregate fold into u
 * ⊙ g, so that one GEMM over n·Hd adds all contributions and none is formed by itself. Where channels are
 * divided among ranks, Hd counts this rank's and W1 is the same on all: what comes out of Wo are its terms of
 * a sum. */
#include "model/delta/private.h"

struct sizes {
    long T, D, Hd, G, n, wide, narrow; /* wide = n·Hd, narrow = n·G: the row distances */
};

static struct sizes sizes(const struct delta_pass *p) {
    const struct delta_config *d = &p->m->config.delta;
    return (struct sizes){
        p->m->T, p->m->config.hidden_size,          p->m->delta->part.Hd,       d->gate_hidden,
        p->n,    (long)p->n * p->m->delta->part.Hd, (long)p->n * d->gate_hidden};
}

static void connection_scales(const struct delta_pass *p, real scale[MAX_DISTANCES]) {
    for (int i = 0; i < p->n; i++) scale[i] = (real)own(p, i)->edge->scale;
}

/* The sparsity term of connection i from v [T, Hd] (unweighted): ‖Wo v‖² = vᵀ (WoᵀWo) v, so no contribution
 * is formed. Its gradients depend on the forward pass alone: the one on v is kept in `extra`, the one on Wo
 * in `out_extra`, as its factor Σ k v vᵀ. */
static void measure_by_gram(struct delta_pass *p, int i, const real *v, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const real *wo = c->out.w + i * z.Hd * z.D;
    real *kv = m->delta->kv + i * z.Hd, *q = p->sparsity ? c->extra + i * z.Hd : kv;
    m->ops->gemm('N', 'T', z.Hd, z.Hd, z.D, 1, wo, z.D, wo, z.D, 0, m->delta->gram, z.Hd);
    m->ops->gemm('N', 'N', z.T, z.Hd, z.Hd, 1, v, z.wide, m->delta->gram, z.Hd, 0, q, z.wide);
    m->ops->gram_rms(z.T, z.Hd, z.D, v, p->sparsity, q, p->sparsity ? kv : NULL, z.wide, c->rms + i * z.T);
    if (p->sparsity)
        m->ops->gemm('T', 'N', z.Hd, z.Hd, z.T, 1, kv, z.wide, v, z.wide, 0, c->out_extra + i * z.Hd * z.Hd,
                     z.Hd);
}

/* The same where the channels are divided: then every rank's v is in c, which is formed, and kept is all of
 * Wo's gradient Σ v (k c)ᵀ. */
static void measure_by_sum(struct delta_pass *p, int i, const real *v, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const real *wo = c->out.w + i * z.Hd * z.D;
    real *sum = m->delta->mean; /* c, then k·c */
    m->ops->gemm('N', 'N', z.T, z.D, z.Hd, 1, v, z.wide, wo, z.D, 0, sum, z.D);
    axis_sum(m->tensor, sum, z.T * z.D);
    m->ops->gram_rms(z.T, z.D, z.D, sum, p->sparsity, sum, NULL, z.D, c->rms + i * z.T);
    if (!p->sparsity) return;
    m->ops->gemm('N', 'T', z.T, z.Hd, z.D, 1, sum, z.D, wo, z.D, 0, c->extra + i * z.Hd, z.wide);
    m->ops->gemm('T', 'N', z.Hd, z.D, z.T, 1, v, z.wide, sum, z.D, 0, c->out_extra + i * z.Hd * z.D, z.D);
}

/* From the unweighted v: the root mean squares, and the gradients where there are any. */
static void measure_sparsity(struct delta_pass *p, const real *v, struct sizes z) {
    bool divided = p->m->delta->part.channels;
    for (int i = 0; i < p->n; i++) (divided ? measure_by_sum : measure_by_gram)(p, i, v + i * z.Hd, z);
}

static void count_measures(struct delta_pass *p, struct sizes z) {
    const struct model *m = p->m;
    const struct delta_part *part = &m->delta->part;
    if (!part->channels || part->leads) {
        m->ops->add_up(p->n * z.T, p->c->rms, &p->sums->sparsity);
        measure_contributions(p);
    }
    m->ops->binary_entropy(z.T, z.wide, p->c->gate, z.wide, 1 / (double)m->config.delta.hidden,
                           &p->sums->entropy);
    for (int i = 0; i < p->n; i++)
        measure_gates(p, i, z.Hd, p->c->gate + i * z.Hd, z.wide,
                      m->delta->dv); /* the unweighted v is used up */
}

/* What the forward pass has kept of Wo's gradient. */
static void sparsity_backward(struct delta_pass *p, struct sizes z) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    if (m->delta->part.channels) {
        m->ops->add(z.wide * z.D, c->out_extra, c->out.g);
        return;
    }
    for (int i = 0; i < p->n; i++)
        m->ops->gemm('N', 'N', z.Hd, z.D, z.Hd, 1, c->out_extra + i * z.Hd * z.Hd, z.Hd,
                     c->out.w + i * z.Hd * z.D, z.D, 1, c->out.g + i * z.Hd * z.D, z.D);
}

bool bottleneck_keeps_extra(const struct model *m, int policy) {
    return policy < (m->delta->part.channels ? POLICY_FULL : POLICY_SELECTIVE);
}

void bottleneck_fill(struct delta_pass *p, bool maps) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct ops *ops = m->ops;
    struct sizes z = sizes(p);
    real scale[MAX_DISTANCES];
    connection_scales(p, scale);
    if (maps) {
        project_forward(p, MAP_DIFFERENCE, c->proj.w, z.Hd, c->p);
        means_forward(p, c->gate_in.w, c->x);
        ops->bias_silu(z.T, z.narrow, c->gate_in_bias.w, c->x, c->h);
    } else {
        ops->silu(z.T * z.narrow, c->x, c->h);
    }
    for (int i = 0; i < p->n; i++)
        ops->gemm('N', 'T', z.T, z.Hd, z.G, 1, c->h + i * z.G, z.narrow, c->gate_out.w + i * z.Hd * z.G, z.G,
                  0, c->gate + i * z.Hd, z.wide);
    const real *r = row_factor(p, 0), *bias = c->gate_out_bias.w;
    if (!p->measure) {
        ops->bottleneck_gate(z.T, z.n, z.Hd, bias, c->p, r, scale, c->weight, c->gate, c->v);
        return;
    }
    ops->bottleneck_gate(z.T, z.n, z.Hd, bias, c->p, r, scale, NULL, c->gate, m->delta->dv);
    ops->scale_connections(z.T, z.n, z.Hd, c->weight, m->delta->dv, c->v);
    if (!p->recomputed || (p->sparsity && !bottleneck_keeps_extra(m, c->policy)))
        measure_sparsity(p, m->delta->dv, z);
    if (!p->recomputed) count_measures(p, z);
}

void bottleneck_contribute(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    const struct connections *c = p->c;
    const struct ops *ops = p->m->ops;
    struct sizes z = sizes(p);
    if (step == 0) {
        ops->gemm('N', 'N', z.T, z.D, z.wide, 1, c->v, z.wide, c->out.w, z.D, add, out, ldo);
        return;
    }
    for (int i = 0; i < p->n; i++)
        ops->gemm('N', 'N', z.T, z.D, z.Hd, 1, c->v + i * z.Hd, z.wide, c->out.w + i * z.Hd * z.D, z.D, add,
                  out + i * step, ldo);
}

/* Gradients of v and Wo from those of the contributions; done with dout afterwards. */
static void output_backward(struct delta_pass *p, const real *dout, long ldo, long step, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    int blocks = step ? p->n : 1; /* one GEMM over all connections where they share dout */
    long width = step ? z.Hd : z.wide;
    for (int i = 0; i < blocks; i++) {
        const real *d = dout + i * step, *v = c->v + i * width;
        m->ops->gemm('N', 'T', z.T, width, z.D, 1, d, ldo, c->out.w + i * width * z.D, z.D, 0,
                     m->delta->dv + i * width, z.wide);
        m->ops->gemm('T', 'N', width, z.D, z.T, 1, v, z.wide, d, ldo, 1, c->out.g + i * width * z.D, z.D);
    }
}

void bottleneck_backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct ops *ops = m->ops;
    struct sizes z = sizes(p);
    real scale[MAX_DISTANCES];
    connection_scales(p, scale);
    if (p->sparsity) sparsity_backward(p, z);
    output_backward(p, dout, ldo, step, z);
    ops->bottleneck_gate_back(z.T, z.n, z.Hd, c->p, row_factor(p, 0), scale, c->weight,
                              p->sparsity ? c->extra : NULL, p->entropy / (double)m->config.delta.hidden,
                              c->gate, m->delta->dv, m->delta->dweight,
                              m->config.delta.normalize ? m->delta->dr : NULL);
    ops->add_column_sums(z.T, z.wide, c->gate, z.wide, c->gate_out_bias.g);
    for (int i = 0; i < p->n; i++) {
        const real *dz = c->gate + i * z.Hd;
        ops->gemm('T', 'N', z.Hd, z.G, z.T, 1, dz, z.wide, c->h + i * z.G, z.narrow, 1,
                  c->gate_out.g + i * z.Hd * z.G, z.G);
        ops->gemm('N', 'N', z.T, z.G, z.Hd, 1, dz, z.wide, c->gate_out.w + i * z.Hd * z.G, z.G, 0,
                  m->delta->dx + i * z.G, z.narrow);
    }
    project_backward(p, MAP_DIFFERENCE, c->proj, z.Hd, m->delta->dv);
    struct delta_pass part = means_sum(p, m->delta->dx);
    real *dx = m->delta->dx + part.row0 * z.narrow;
    ops->silu_back(part.rows * z.narrow, c->x + part.row0 * z.narrow, dx, dx);
    ops->add_column_sums(part.rows, z.narrow, dx, z.narrow, c->gate_in_bias.g);
    project_backward(&part, MAP_MEAN, c->gate_in, z.G, dx);
    for (int i = 0; i < p->n && m->config.delta.normalize; i++) {
        ops->zero(z.T, m->delta->k);
        normalize_backward(p, i, m->delta->dr + i * z.T, m->delta->k);
        ops->delta_spread(z.T, z.D, NULL, m->delta->k, p->t, own(p, i)->s, p->dt, own(p, i)->ds);
    }
}
