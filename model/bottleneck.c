/* The gate `bottleneck` (model.md, 3): u = Wp δ, g = σ(W2 silu(W1 (s+t)/2 + b1) + b2), c = Wo (u ⊙ s(d) g).
 *
 * All slots of a layer are computed side by side in [T, n·Hd]; the weights of the aggregate fold into u ⊙ g,
 * so that one GEMM over n·Hd adds all contributions and none is formed by itself. */
#include "model/internal.h"

struct sizes {
    long T, D, Hd, G, n, wide, narrow; /* wide = n·Hd, narrow = n·G: the row distances */
};

static struct sizes sizes(const struct delta_pass *p) {
    const struct delta_config *d = &p->m->config.delta;
    return (struct sizes){p->m->T,
                          p->m->config.hidden_size,
                          d->hidden,
                          d->gate_hidden,
                          p->n,
                          (long)p->n * d->hidden,
                          (long)p->n * d->gate_hidden};
}

static void slot_scales(const struct delta_pass *p, real scale[MAX_DISTANCES]) {
    for (int i = 0; i < p->n; i++) scale[i] = (real)p->c->edge[i].scale;
}

/* The sparsity term from v [T, n·Hd] (unweighted): ‖Wo v‖² = vᵀ (WoᵀWo) v, so no contribution is formed. Its
 * gradient on Wo depends on the forward pass alone and is added here; the one on v is kept in `extra`. */
static void measure_sparsity(struct delta_pass *p, const real *v, struct sizes z) {
    struct model *m = p->m;
    struct connections *c = p->c;
    for (int i = 0; i < p->n; i++) {
        const real *wo = c->out.w + i * z.Hd * z.D, *vi = v + i * z.Hd;
        real *q = c->extra + i * z.Hd, *kv = m->kv + i * z.Hd, *rms = c->rms + i * z.T;
        m->ops->gemm('N', 'T', z.Hd, z.Hd, z.D, 1, wo, z.D, wo, z.D, 0, m->gram, z.Hd);
        m->ops->gemm('N', 'N', z.T, z.Hd, z.Hd, 1, vi, z.wide, m->gram, z.Hd, 0, q, z.wide);
        m->ops->gram_rms(z.T, z.Hd, z.D, vi, p->sparsity, q, kv, z.wide, rms);
        for (long t = 0; t < z.T; t++) p->sums->sparsity += rms[t];
        if (!p->sparsity) continue;
        m->ops->gemm('T', 'N', z.Hd, z.Hd, z.T, 1, kv, z.wide, vi, z.wide, 0, m->gram, z.Hd);
        m->ops->gemm('N', 'N', z.Hd, z.D, z.Hd, 1, m->gram, z.Hd, wo, z.D, 1, c->out.g + i * z.Hd * z.D, z.D);
    }
}

void bottleneck_forward(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct ops *ops = m->ops;
    struct sizes z = sizes(p);
    real scale[MAX_DISTANCES];
    slot_scales(p, scale);
    project_forward(p, MAP_DIFFERENCE, c->proj.w, z.Hd, c->p);
    project_forward(p, MAP_MEAN, c->gate_in.w, z.G, c->x);
    ops->bias_silu(z.T, z.narrow, c->gate_in_bias.w, c->x, c->h);
    for (int i = 0; i < p->n; i++)
        ops->gemm('N', 'T', z.T, z.Hd, z.G, 1, c->h + i * z.G, z.narrow, c->gate_out.w + i * z.Hd * z.G, z.G,
                  0, c->gate + i * z.Hd, z.wide);
    const real *r = row_factor(p, 0), *bias = c->gate_out_bias.w;
    if (p->measure) {
        ops->bottleneck_gate(z.T, z.n, z.Hd, bias, c->p, r, scale, NULL, c->gate, m->dv);
        ops->scale_slots(z.T, z.n, z.Hd, c->weight, m->dv, c->v);
        measure_sparsity(p, m->dv, z);
        p->sums->entropy += ops->binary_entropy(z.T, z.wide, c->gate, z.wide) / (double)z.Hd;
    } else {
        ops->bottleneck_gate(z.T, z.n, z.Hd, bias, c->p, r, scale, c->weight, c->gate, c->v);
    }
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
    int blocks = step ? p->n : 1; /* one GEMM over all slots where they share dout */
    long width = step ? z.Hd : z.wide;
    for (int i = 0; i < blocks; i++) {
        const real *d = dout + i * step, *v = c->v + i * width;
        m->ops->gemm('N', 'T', z.T, width, z.D, 1, d, ldo, c->out.w + i * width * z.D, z.D, 0,
                     m->dv + i * width, z.wide);
        m->ops->gemm('T', 'N', width, z.D, z.T, 1, v, z.wide, d, ldo, 1, c->out.g + i * width * z.D, z.D);
    }
}

void bottleneck_backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct model *m = p->m;
    struct connections *c = p->c;
    const struct ops *ops = m->ops;
    struct sizes z = sizes(p);
    real scale[MAX_DISTANCES];
    slot_scales(p, scale);
    output_backward(p, dout, ldo, step, z);
    ops->bottleneck_gate_back(z.T, z.n, z.Hd, c->p, row_factor(p, 0), scale, c->weight,
                              p->sparsity ? c->extra : NULL, p->entropy / (double)z.Hd, c->gate, m->dv,
                              m->dweight, c->scale.w ? m->dr : NULL);
    ops->add_column_sums(z.T, z.wide, c->gate, z.wide, c->gate_out_bias.g);
    for (int i = 0; i < p->n; i++) {
        const real *dz = c->gate + i * z.Hd;
        ops->gemm('T', 'N', z.Hd, z.G, z.T, 1, dz, z.wide, c->h + i * z.G, z.narrow, 1,
                  c->gate_out.g + i * z.Hd * z.G, z.G);
        ops->gemm('N', 'N', z.T, z.G, z.Hd, 1, dz, z.wide, c->gate_out.w + i * z.Hd * z.G, z.G, 0,
                  m->dx + i * z.G, z.narrow);
    }
    ops->silu_back(z.T * z.narrow, c->x, m->dx, m->dx);
    ops->add_column_sums(z.T, z.narrow, m->dx, z.narrow, c->gate_in_bias.g);
    project_backward(p, MAP_DIFFERENCE, c->proj, z.Hd, m->dv);
    project_backward(p, MAP_MEAN, c->gate_in, z.G, m->dx);
    for (int i = 0; i < p->n && c->scale.w; i++) {
        ops->zero(z.T, m->k);
        normalize_backward(p, i, m->dr + i * z.T, m->k);
        ops->delta_spread(z.T, z.D, NULL, m->k, p->t, p->s[i], p->dt, p->ds[i]);
    }
}
