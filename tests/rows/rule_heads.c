/* A rule between layers that adds to a layer's queries, keys or values maps of its sources, gated by what the
 * layer reads: v ← v + Σ_j w_j σ(G_j n + b_j) ⊙ M_j u_j, where u_j [D] is the sum of the source at a token
 * and at the token before it, which generation keeps. Each tensor rank has the rows of M, G and b of its
 * heads. */
#include "rows.h"

#include "model/rules/rules.h"

enum { MAP, GATE, BIAS, WEIGHT, LEAVES };

static const char *const leaf_name[LEAVES] = {"map.weight", "gate.weight", "gate.bias", "weight"};

/* H: this rank's columns of the heads. */
struct value {
    int policy;
    struct tensor leaf[LEAVES]; /* stacked: [n, H, D], [n, H, D], [n, H], [n] */
    real *mapped, *gate; /* saved: [n, T, H] M u, and G n or its gate; the backward pass uses them up */
};

struct common {
    real *u, *du;         /* [T, D] */
    real *added;          /* [T, H] of one connection, and its gradient */
    real *weight, *slope; /* [T] its w, for each token, and the gradient */
};

/* Of the tokens so far. */
struct last {
    real *source; /* [n, D] at the last token, 0 before the first */
};

static long columns(const struct model *m, const struct rule_layer *x) {
    return rule_width(&m->config, (enum rule_place)x->entry->settings->place) / m->layout.size[AXIS_TENSOR];
}

static int leaves(const struct model_config *config, const struct rule_config *settings, struct leaf *leaf) {
    long D = config->hidden_size, H = rule_width(config, (enum rule_place)settings->place);
    leaf[MAP] = leaf_matrix(leaf_name[MAP], SPLIT_ROWS, H, D, LEAF_WIDTH);
    leaf[GATE] = leaf_matrix(leaf_name[GATE], SPLIT_ROWS, H, D, LEAF_WIDTH);
    leaf[BIAS] = leaf_vector(leaf_name[BIAS], SPLIT_ROWS, H, 0);
    leaf[WEIGHT] = leaf_vector(leaf_name[WEIGHT], SPLIT_NONE, 1, 0.1 * (1 + settings->place));
    return LEAVES;
}

static double flops(const struct model_config *config, const struct rule_config *settings, int n) {
    return 2.0 * 2 * n * config->hidden_size * rule_width(config, (enum rule_place)settings->place);
}

static void find(struct model *m, const struct rule_layer *x) {
    struct value *v = x->own;
    for (int i = 0; i < LEAVES; i++) v->leaf[i] = rule_find_connections(m, x, leaf_name[i]);
}

static void lay_out(struct model *m, const struct rule_layer *x, void *shared_of_all, long T) {
    struct value *v = x->own, *shared = shared_of_all;
    v->policy = x->policy;
    SAVE(m, v, shared, mapped, T * x->n * columns(m, x), POLICY_FULL);
    SAVE(m, v, shared, gate, T * x->n * columns(m, x), POLICY_SELECTIVE);
}

static void lay_out_scratch(struct model *m, const struct model_rule *rule, long T, int n) {
    struct common *c = rule->common;
    long D = m->config.hidden_size, H = rule_width(&m->config, (enum rule_place)rule->entry.settings->place) /
                                        m->layout.size[AXIS_TENSOR];
    (void)n;
    c->u = take(&m->scratch, T * D);
    c->added = take(&m->scratch, T * H);
    c->weight = take(&m->scratch, T);
    if (!m->training) return;
    c->du = take(&m->scratch, T * D);
    c->slope = take(&m->scratch, T);
}

/* u of a connection, from its source. */
static void add_last(struct model *m, const struct rule_layer *x, int i, real *u) {
    const real *s = node_output(m, x->edge[i].source);
    struct last *last = x->decode;
    long D = m->config.hidden_size;
    m->ops->copy(m->T * D, s, u);
    for (long t = 0; !last && t < m->T; t += m->S) m->ops->add((m->S - 1) * D, s + t * D, u + (t + 1) * D);
    if (!last) return;
    m->ops->add(D, last->source + i * D, u);
    m->ops->copy(D, s, last->source + i * D);
}

/* What a connection adds, and what its backward pass reads. */
static void compute(struct model *m, const struct rule_layer *x, int i) {
    const struct ops *ops = m->ops;
    const struct value *v = x->own;
    const struct common *c = rule_common(m, x);
    const real one = 1;
    long T = m->T, D = m->config.hidden_size, H = columns(m, x);
    real *mapped = v->mapped + i * T * H, *gate = v->gate + i * T * H;
    add_last(m, x, i, c->u);
    ops->gemm('N', 'T', T, H, D, 1, c->u, D, v->leaf[MAP].w + i * H * D, D, 0, mapped, H);
    ops->gemm('N', 'T', T, H, D, 1, x->heads->n, D, v->leaf[GATE].w + i * H * D, D, 0, gate, H);
    ops->connection_weights(T, 1, NULL, 1, 1, 1, v->leaf[WEIGHT].w + i, c->weight);
    ops->bottleneck_gate(T, 1, H, v->leaf[BIAS].w + i * H, mapped, NULL, &one, c->weight, gate, c->added);
}

static void again(struct model *m, const struct rule_layer *x) {
    for (int i = 0; i < x->n; i++)
        if (rule_edge_active(m, x, i)) compute(m, x, i);
}

static void forward(struct model *m, const struct rule_layer *x, real *out, struct loss_sums *sums) {
    const struct common *c = rule_common(m, x);
    long H = columns(m, x);
    (void)sums;
    for (int i = 0; i < x->n; i++) {
        if (!rule_edge_active(m, x, i)) continue;
        compute(m, x, i);
        m->ops->add_columns(m->T, H, 1, c->added, H, out, x->heads->ld);
    }
}

/* Of a connection, from du [T, D], this rank's terms: its source's gradient. */
static void leave_at_source(struct model *m, const struct rule_layer *x, int i, const real *du) {
    real *ds = source_gradient_of(m, x->edge[i].source);
    long D = m->config.hidden_size;
    m->ops->add(m->T * D, du, ds);
    for (long t = 0; t < m->T; t += m->S) m->ops->add((m->S - 1) * D, du + (t + 1) * D, ds + t * D);
}

static void connection_backward(struct model *m, const struct rule_layer *x, int i) {
    const struct ops *ops = m->ops;
    const struct value *v = x->own;
    const struct common *c = rule_common(m, x);
    const struct tensor *leaf = v->leaf;
    const real one = 1, *n = x->heads->n;
    long T = m->T, D = m->config.hidden_size, H = columns(m, x), at = i * H * D;
    real *dmapped = c->added, *dgate = v->gate + i * T * H;
    ops->copy_columns(T, H, x->heads->at, x->heads->ld, dmapped, H);
    ops->connection_weights(T, 1, NULL, 1, 1, 1, leaf[WEIGHT].w + i, c->weight);
    ops->bottleneck_gate_back(T, 1, H, v->mapped + i * T * H, NULL, &one, c->weight, NULL, 0, NULL, dgate,
                              dmapped, c->slope, NULL);
    ops->connection_weights_back(T, 1, NULL, 1, 1, 1, leaf[WEIGHT].w + i, c->slope, leaf[WEIGHT].g + i, NULL);
    add_last(m, x, i, c->u);
    ops->gemm('T', 'N', H, D, T, 1, dmapped, H, c->u, D, 1, leaf[MAP].g + at, D);
    ops->gemm('T', 'N', H, D, T, 1, dgate, H, n, D, 1, leaf[GATE].g + at, D);
    ops->add_column_sums(T, H, dgate, H, leaf[BIAS].g + i * H);
    ops->gemm('N', 'N', T, D, H, 1, dgate, H, leaf[GATE].w + at, D, 1, x->heads->dn, D);
    ops->gemm('N', 'N', T, D, H, 1, dmapped, H, leaf[MAP].w + at, D, 0, c->du, D);
    leave_at_source(m, x, i, c->du);
}

static void backward(struct model *m, const struct rule_layer *x) {
    for (int i = 0; i < x->n; i++)
        if (rule_edge_active(m, x, i)) connection_backward(m, x, i);
}

static void lay_out_decode(struct model *m, const struct rule_layer *x, struct arena *arena, long capacity) {
    struct last *last = x->decode;
    (void)capacity;
    last->source = take(arena, x->n * m->config.hidden_size);
}

static void reset(struct model *m, const struct rule_layer *x) {
    struct last *last = x->decode;
    m->ops->zero(x->n * m->config.hidden_size, last->source);
}

static const struct rule_form form = {.settings = 1u << SETTING_PLACE | 1u << SETTING_SOURCES};

static const struct rule heads = {.name = "heads",
                                  .forms = &form,
                                  .num_forms = 1,
                                  .places = 1u << PLACE_QUERY | 1u << PLACE_KEY | 1u << PLACE_VALUE,
                                  .edges = rule_edges,
                                  .connection_leaves = leaves,
                                  .flops = flops,
                                  .own_bytes = sizeof(struct value),
                                  .common_bytes = sizeof(struct common),
                                  .find = find,
                                  .lay_out = lay_out,
                                  .lay_out_scratch = lay_out_scratch,
                                  .forward = forward,
                                  .backward = backward,
                                  .again = again,
                                  .decode_bytes = sizeof(struct last),
                                  .lay_out_decode = lay_out_decode,
                                  .reset = reset};

int register_rule_heads(void) {
    return rule_register(&heads);
}
