/* `delta.normalize`: δ' = γ·δ/max(‖δ‖, ε) (model.md, 2). It is never formed: δ' = r·δ with one factor r a
 * token, and everything linear in δ' commutes with it. */
#include "model/delta/private.h"

void normalize_forward(struct delta_pass *p) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    if (!m->config.delta.normalize) return;
    for (int i = 0; i < p->n; i++) {
        real *inv = c->inv + i * m->T;
        m->ops->delta_inverse_norm(m->T, m->config.hidden_size, p->t, own(p, i)->s, m->config.delta.epsilon,
                                   inv);
        m->ops->row_factors(m->T, own_tensor(p, c->scale, i, 1).w, inv, c->r + i * m->T);
    }
}

const real *row_factor(const struct delta_pass *p, int connection) {
    return p->m->config.delta.normalize ? p->c->r + connection * p->m->T : NULL;
}

void normalize_backward(struct delta_pass *p, int connection, const real *dr, real *k) {
    const struct connections *c = p->c;
    if (!p->m->config.delta.normalize) return;
    struct tensor scale = own_tensor(p, c->scale, connection, 1);
    p->m->ops->row_factors_back(p->m->T, scale.w, c->inv + connection * p->m->T, p->m->config.delta.epsilon,
                                dr, k, scale.g);
}

void renew_norms(struct model *m, const struct rule_layer *x) {
    struct delta_pass p = {.m = m, .x = x, .c = x->own, .source = m->delta->source};
    if (!m->config.delta.normalize) return;
    find_active(&p);
    if (p.all) p.t = rule_input(m, x);
    for (int i = 0; i < p.all; i++) p.source[i].s = node_output(m, p.source[i].edge->source);
    normalize_forward(&p);
}
