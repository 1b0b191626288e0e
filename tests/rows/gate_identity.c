/* A gate that is the identity but for a trained factor, at first 1: c = gain · δ'. */
#include "rows.h"

#include "model/delta/gated.h"

#include <stdlib.h>

enum { GAIN }; /* its leaf, stacked: [n] */

struct identity {
    int policy;
    real *gate; /* [n, T] the gain, for all channels of a token */
};

struct scratch {
    real *gate; /* [T] of one connection: for the sake of having some */
};

static struct gated gate(const struct delta_pass *p, int i) {
    const struct identity *own = p->c->gate;
    return (struct gated){.gate = own->gate + i * p->m->T, .gates = 1, .scale = 1};
}

static struct gated_row gated(const struct delta_pass *p) {
    return (struct gated_row){gate, p->m->config.hidden_size};
}

static void fill(struct delta_pass *p, bool maps) {
    const struct model *m = p->m;
    struct identity *own = p->c->gate;
    struct scratch *scratch = m->delta->gate_scratch;
    (void)maps;
    for (int i = 0; i < p->n; i++) {
        m->ops->connection_weights(m->T, 1, NULL, 1, 1, 1, own_tensor(p, p->c->leaf[GAIN], i, 1).w, scratch->gate);
        m->ops->copy(m->T, scratch->gate, own->gate + i * m->T);
        if (gated_measures(p) && gated_counts(m)) measure_gates(p, i, 1, scratch->gate, 1, NULL);
    }
}

static void contribute(struct delta_pass *p, bool add, real *out, long ldo, long step) {
    struct gated_row row = gated(p);
    gated_contribute(p, &row, add, out, ldo, step);
}

static void gate_back(struct delta_pass *p, int i, real *dd, real *k) {
    const struct model *m = p->m;
    (void)dd, (void)k;
    m->ops->add_column_sums(m->T, 1, m->delta->dgate, 1, own_tensor(p, p->c->leaf[GAIN], i, 1).g);
}

static void backward(struct delta_pass *p, const real *dout, long ldo, long step) {
    struct gated_row row = gated(p);
    gated_backward(p, &row, dout, ldo, step, gate_back);
}

static int leaves(const struct model_config *config, struct leaf *leaf) {
    (void)config;
    leaf[GAIN] = leaf_vector("gain", SPLIT_NONE, 1, 1);
    return GAIN + 1;
}

static long gates(const struct model_config *config) {
    (void)config;
    return 1;
}

static double flops(const struct model_config *config) {
    return 2.0 * config->hidden_size;
}

static const struct conflict *conflict(const struct model_config *config, int ranks) {
    static const struct conflict hot = {"an identity has no temperature",
                                        {"model.delta.kind", "model.delta.temperature"}};
    (void)ranks;
    return config->delta.temperature != 1 ? &hot : NULL;
}

static void lay_out(struct model *m, struct connections *c, long T) {
    struct identity *own = c->gate, *shared = m->delta->shared->gate;
    own->policy = c->policy;
    SAVE(m, own, shared, gate, T * own_connections(&m->delta->part, c->n), POLICY_SELECTIVE);
}

static void lay_out_scratch(struct model *m, long T, long n) {
    struct scratch *scratch = m->delta->gate_scratch;
    scratch->gate = take(&m->scratch, T);
    gated_lay_out_scratch(m, T, n);
}

static void show(const struct delta_pass *p, int i, struct delta_view *view) {
    view->gate = gate(p, i).gate;
    view->gates = view->gate_ld = 1;
}

static const struct gate identity = {.name = "identity",
                                     .leaves = leaves,
                                     .mixed = true,
                                     .parts = PARTS_REPLICATED,
                                     .gates = gates,
                                     .flops = flops,
                                     .conflict = conflict,
                                     .saved_bytes = sizeof(struct identity),
                                     .scratch_bytes = sizeof(struct scratch),
                                     .lay_out = lay_out,
                                     .lay_out_scratch = lay_out_scratch,
                                     .fill = fill,
                                     .contribute = contribute,
                                     .backward = backward,
                                     .show = show};

static int kind;

void rows_of_gates(void) {
    if (!kind) kind = gate_register(&identity);
}

void choose_gate(struct model_config *model) {
    if (getenv("GDN_TEST_GATE")) model->delta.kind = kind;
}
