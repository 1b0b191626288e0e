/* The gate `full` (model.md, 3): c = δ' ⊙ g, as wide as the model: g = σ(s(d) Wg δ').
 *
 * Where channels are divided among ranks, each has the rows of Wg for its columns of gate and contribution.
 */
#include "model/delta/gated.h"

enum { GATE }; /* its leaf: Wg, stacked [n][W, D] */

struct full {
    int policy;
    real *x, *gate; /* [n, T, W] Wg δ, and the gate */
};

/* Fills the gate [T, W] of one connection. */
static void fill_one(struct delta_pass *p, int i, bool maps) {
    const struct model *m = p->m;
    struct connections *c = p->c;
    struct full *f = c->gate;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.W;
    real *x = f->x + i * T * W, *gate = f->gate + i * T * W;
    const real *w = own_tensor(p, c->leaf[GATE], i, W * D).w;
    if (maps) m->ops->gemm('N', 'T', T, W, D, 1, gated_difference(p, i), D, w, D, 0, x, W);
    m->ops->sigmoid_gate(T, W, own(p, i)->edge->scale, row_factor(p, i), x, gate, W);
    if (!gated_measures(p)) return;
    m->ops->binary_entropy(T, W, gate, W, 1 / (double)D, m->counts, &p->sums->entropy);
    measure_gates(p, i, W, gate, W, m->delta->difference);
}

static void gate_back(struct delta_pass *p, int i, real *dd, real *k) {
    (void)k;
    struct model *m = p->m;
    struct connections *c = p->c;
    struct full *f = c->gate;
    long T = m->T, D = m->config.hidden_size, W = m->delta->part.W;
    struct tensor w = own_tensor(p, c->leaf[GATE], i, W * D);
    m->ops->sigmoid_gate_back(T, W, own(p, i)->edge->scale, row_factor(p, i), f->x + i * T * W,
                              f->gate + i * T * W, W, p->entropy / (double)D, m->counts, m->delta->dgate, W,
                              m->delta->dr);
    m->ops->gemm('N', 'N', T, D, W, 1, m->delta->dgate, W, w.w, D, 1, dd, D);
    weight_gradient(m, NO_WEIGHT_ID, W, D, T, 1, m->delta->dgate, W, gated_difference(p, i), D, w.g, D);
}

static struct gated gate(const struct delta_pass *p, int i) {
    const struct full *f = p->c->gate;
    long W = p->m->delta->part.W;
    return (struct gated){f->gate + i * p->m->T * W, W,
                          W < p->m->config.hidden_size ? p->m->delta->part.column : 0, 1};
}

static struct gated_row gated(const struct delta_pass *p) {
    return (struct gated_row){gate, p->m->delta->part.W};
}

static void fill(struct delta_pass *p, bool maps) {
    for (int i = 0; i < p->n; i++) fill_one(p, i, maps);
}

static void contribute(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    struct gated_row row = gated(p);
    gated_contribute(p, &row, add, out, ldo, step);
}

static void backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct gated_row row = gated(p);
    gated_backward(p, &row, dout, ldo, step, gate_back);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    long D = config->hidden_size;
    leaf[GATE] = leaf_matrix("gate.weight", SPLIT_ROWS, D, D, LEAF_WIDTH);
    return GATE + 1;
}

static long gates(const struct model_config *config) {
    return config->hidden_size;
}

static double flops(const struct model_config *config) {
    double D = config->hidden_size;
    return 2 * D * D;
}

static const struct conflict *conflict(const struct model_config *config, int ranks) {
    (void)config, (void)ranks; /* heads, of which tensor ranks have as many each, divide the columns */
    return NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct full *f = c->gate, *shared = m->delta->shared->gate;
    long n = own_connections(&m->delta->part, c->n), W = m->delta->part.W;
    f->policy = c->policy;
    SAVE_BF16_ROOT(m, f, shared, x, T * n * W);
    SAVE_BF16(m, f, shared, gate, T * n * W, POLICY_SELECTIVE);
}

static void show(const struct delta_pass *p, int i, struct delta_view *view) {
    struct gated g = gate(p, i);
    view->gate = g.gate;
    view->gates = view->gate_ld = g.gates;
}

const struct gate gate_full = {.name = "full",
                               .leaves = leaves,
                               .mixed = true,
                               .parts = PARTS_SIDE_BY_SIDE,
                               .gates = gates,
                               .flops = flops,
                               .conflict = conflict,
                               .saved_bytes = sizeof(struct full),
                               .lay_out = lay_out,
                               .lay_out_scratch = gated_lay_out_scratch,
                               .fill = fill,
                               .contribute = contribute,
                               .backward = backward,
                               .show = show};
