/* `delta.normalize`: δ' = γ·δ/max(‖δ‖, ε) (model.md, 2). It is never formed: δ' = r·δ with one factor r a
 * token, and everything linear in δ' commutes with it. */
#include "model/internal.h"

void normalize_forward(struct delta_pass *p) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    if (!c->scale.w) return;
    for (int i = 0; i < p->n; i++) {
        real *inv = c->inv + i * m->T, *r = c->r + i * m->T;
        m->ops->delta_inverse_norm(m->T, m->config.hidden_size, p->t, p->s[i], m->config.delta.epsilon, inv);
        for (long t = 0; t < m->T; t++) r[t] = c->scale.w[i] * inv[t];
    }
}

const real *row_factor(const struct delta_pass *p, int slot) {
    return p->c->scale.w ? p->c->r + slot * p->m->T : NULL;
}

void normalize_backward(struct delta_pass *p, int slot, const real *dr, real *k) {
    struct connections *c = p->c;
    if (!c->scale.w) return;
    const real *inv = c->inv + slot * p->m->T;
    real gamma = c->scale.w[slot], least = (real)(1 / p->m->config.delta.epsilon);
    double dgamma = 0;
    for (long t = 0; t < p->m->T; t++) {
        dgamma += (double)dr[t] * inv[t];
        if (inv[t] < least)
            k[t] -= dr[t] * gamma * inv[t] * inv[t] * inv[t]; /* at ε the norm is a constant */
    }
    c->scale.g[slot] += (real)dgamma;
}
