/* A rule between layers that adds a trained constant times each source: out = in + Σ w_i s_i, from the node
 * below and the sources of its entry. It enters before a layer, or after it, and may do so more than once.
 * Tensor ranks share the rows of its backward pass. */
#include "rows.h"

#include "model/rules/rules.h"

struct constant {
    int policy;
    struct tensor weight; /* [n] */
    real *factor;         /* saved: [n, R] a connection's weight, for every row */
};

static int edges(const struct model_config *config, const struct rule_config *settings, int layer,
                 struct edge *edge) {
    int n = 0;
    (void)config;
    edge[n++] = (struct edge){.source = layer - 1};
    for (int i = 0; i < settings->num_sources; i++)
        if (settings->sources[i] < layer - 1) edge[n++] = (struct edge){.source = settings->sources[i]};
    return n;
}

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    (void)config;
    leaf[0] = leaf_vector("weight", SPLIT_NONE, 1, settings->place == PLACE_BEFORE ? 0.1 : 0.05);
    leaf[0].lr_scale = 4; /* what a kind of tensor brings of its own */
    return 1;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    (void)settings;
    return 2.0 * config->hidden_size * n;
}

static void find(struct model *m, const struct rule_layer *x) {
    struct constant *c = x->own;
    c->weight = rule_find_connections(m, x, "weight");
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct constant *c = x->own, *shared = shared_of_all;
    (void)T;
    c->policy = x->policy;
    SAVE(m, c, shared, factor, m->rows_max * x->n, POLICY_SELECTIVE);
}

static void again(struct model *m, const struct rule_layer *x) {
    const struct constant *c = x->own;
    for (int i = 0; i < x->n; i++)
        m->ops->connection_weights(m->rows, 1, NULL, 1, 1, 1, c->weight.w + i, c->factor + i * m->rows);
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct constant *c = x->own;
    (void)sums;
    again(m, x);
    for (int i = 0; i < x->n; i++)
        m->ops->add_scaled_rows(m->rows, m->stream, c->factor + i * m->rows,
                                stream_rows(m, node_output(m, x->edge[i].source)), out);
}

static void backward(struct model *m, const struct rule_layer *x) {
    const struct constant *c = x->own;
    struct row_range terms = rule_terms(m);
    long W = m->stream, at = terms.first * W, count = terms.count * W;
    const real *dout = m->g + at;
    for (int i = 0; i < x->n; i++) {
        int node = x->edge[i].source;
        m->ops->add_scaled_rows(terms.count, W, c->factor + i * m->rows, dout,
                                source_gradient_of(m, node) + at);
        m->ops->gemm('N', 'T', 1, 1, count, 1, dout, count, node_output(m, node) + at, count, 1,
                     c->weight.g + i, 1);
    }
}

static const struct rule_form form = {.settings = 1u << SETTING_PLACE | 1u << SETTING_SOURCES};

static const struct rule constant = {.name = "constant",
                                     .forms = &form,
                                     .num_forms = 1,
                                     .places = 1u << PLACE_BEFORE | 1u << PLACE_AFTER,
                                     .edges = edges,
                                     .connection_leaves = leaves,
                                     .flops = flops,
                                     .own_bytes = sizeof(struct constant),
                                     .find = find,
                                     .lay_out = lay_out,
                                     .forward = forward,
                                     .backward = backward,
                                     .again = again};

int register_rule_constant(void) {
    return rule_register(&constant);
}
