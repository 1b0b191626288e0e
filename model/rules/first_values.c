/* The first layer's values, in other layers. */
#include "model/rules/first_values.h"

#include "model/base/dropout.h"

const char *const first_values_leaves[] = {"input_layernorm.weight", "self_attn.v_proj.weight", NULL};

void first_values_find(const struct model *m, struct first_values *f) {
    f->norm = rule_find_trunk(m, 0, first_values_leaves[0]);
    f->map = rule_find_trunk(m, 0, first_values_leaves[1]);
}

/* The layers of the chunk that has layer l. */
static struct span span_of(const struct model *m, int l) {
    struct span span = {0, 0};
    for (int c = 0; c < m->layout.chunks && l >= span.end; c++)
        span = layout_span(&m->layout, c, m->config.num_layers);
    return span;
}

/* The lowest, or highest, layer of x's chunk that the rule enters; `in_pass`: of those that the pass in
 * progress does not leave out, of which x is one. */
static int end_of(const struct model *m, const struct rule_layer *x, bool lowest, bool in_pass) {
    const struct rule_layer *held = m->rules->rule[x->number].held;
    struct span span = span_of(m, x->layer);
    int l = lowest ? span.first : span.end - 1;
    while (!held[l].enters || (in_pass && drops_layer(m, l))) l += lowest ? 1 : -1;
    return l;
}

void first_values_lay_out(struct model *m, const struct rule_layer *x, struct first_values *f,
                          struct first_values *shared, long T, long H) {
    f->policy = x->policy;
    f->v = f->rstd = NULL;
    if (f != shared && end_of(m, x, true, false) != x->layer) return;
    SAVE(m, f, shared, v, T * H, POLICY_FULL);
    SAVE(m, f, shared, rstd, T, POLICY_FULL);
}

void first_values_lay_out_scratch(struct model *m, struct first_values_scratch *s, long T, long H) {
    long D = m->config.hidden_size;
    s->held = NULL;
    s->n = take(&m->scratch, T * D);
    if (!m->training) return;
    s->dn = take(&m->scratch, T * D);
    s->dx = take(&m->scratch, T * D);
    s->dv = take(&m->scratch, T * H);
}

const struct rule_layer *first_values_lowest(const struct model *m, const struct rule_layer *x) {
    return m->activation_set->rule[x->number] + end_of(m, x, true, false);
}

static void norm(struct model *m, const struct first_values *f, const struct first_values_scratch *s) {
    m->ops->rms_norm(m->T, m->config.hidden_size, node_output(m, -1), f->norm.w, m->config.norm_eps, s->n,
                     f->rstd);
}

void first_values_forward(struct model *m, const struct rule_layer *x, const struct first_values *f,
                          struct first_values_scratch *s, long H) {
    const struct rule_layer *lowest = first_values_lowest(m, x);
    const bool first = x->layer == end_of(m, x, true, true);
    long D = m->config.hidden_size;
    if (!first && (lowest->policy < POLICY_FULL || s->held == lowest)) return;
    norm(m, f, s);
    m->ops->gemm('N', 'T', m->T, H, D, 1, s->n, D, f->map.w, D, 0, f->v, H);
    if (lowest->policy >= POLICY_FULL) s->held = lowest;
}

/* From dv of all layers. What comes by way of n is summed over tensor ranks, each of which has its heads'
 * part; then each has all own rows for the norm's weights, as in the first layer, and adds its terms for x₀.
 */
static void leave(struct model *m, const struct first_values *f, const struct first_values_scratch *s,
                  long H) {
    const struct ops *ops = m->ops;
    struct row_range terms = rule_terms(m);
    long T = m->T, D = m->config.hidden_size, own = m->row0 * D, at = terms.first * D;
    norm(m, f, s);
    ops->gemm('T', 'N', H, D, T, 1, s->dv, H, s->n, D, 1, f->map.g, D);
    ops->gemm('N', 'N', T, D, H, 1, s->dv, H, f->map.w, D, 0, s->dn, D);
    block_sum(m, s->dn);
    ops->zero(T * D, s->dx);
    ops->rms_norm_back(m->rows, D, node_output(m, -1) + own, f->norm.w, f->rstd + m->row0, s->dn + own,
                       s->dx + own, f->norm.g);
    ops->add(terms.count * D, s->dx + at, source_gradient_of(m, -1) + at);
}

void first_values_backward(struct model *m, const struct rule_layer *x, const struct first_values *f,
                           const struct first_values_scratch *s, const real *dv, long H) {
    if (x->layer == end_of(m, x, false, true)) m->ops->zero(m->T * H, s->dv);
    m->ops->add(m->T * H, dv, s->dv);
    if (x->layer == end_of(m, x, true, true)) leave(m, f, s, H);
}
