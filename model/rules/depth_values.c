/* Attention over depth for a layer's values. */
#include "model/rules/depth_values.h"

/* This rank's heads, and their channels. */
struct shape {
    long T, D, K, hd;
};

static struct shape shape_of(const struct model *m) {
    return (struct shape){.T = m->T,
                          .D = m->config.hidden_size,
                          .K = m->config.num_kv_heads / m->layout.size[AXIS_TENSOR],
                          .hd = head_width(&m->config)};
}

int depth_values_leaves(const struct model_config *config, struct leaf *leaf) {
    leaf[0] = leaf_vector("query", SPLIT_ROWS, rule_width(config, PLACE_VALUE), 0);
    leaf[1] = leaf_vector("lambda", SPLIT_ROWS, config->num_kv_heads, 0);
    return 2;
}

/* Map, score and sum. */
double depth_values_flops(const struct model_config *config, int n) {
    return n * (own_input_flops(config, PLACE_VALUE) + 2.0 * 2 * (double)rule_width(config, PLACE_VALUE));
}

void depth_values_find(const struct model *m, const struct rule_layer *x, struct depth_values *d) {
    d->query = rule_find_shared(m, x, "query");
    d->lambda = rule_find_shared(m, x, "lambda");
    own_input_find(m, x->layer, PLACE_VALUE, &d->input);
}

void depth_values_lay_out_scratch(struct model *m, struct depth_values_scratch *s, long T, int n) {
    struct shape z = shape_of(m);
    s->norm = take(&m->scratch, T * z.D);
    s->rstd = take(&m->scratch, T);
    s->mapped = take(&m->scratch, n * T * z.K * z.hd);
    s->head = take(&m->scratch, T * z.hd);
    if (!m->training) return;
    s->zero = take(&m->scratch, T * z.hd);
    s->dmapped = take(&m->scratch, n * T * z.K * z.hd);
    s->dquery = take(&m->scratch, T * z.hd);
    s->dlambda = take(&m->scratch, T);
    s->dnorm = take(&m->scratch, T * z.D);
    s->dsource = take(&m->scratch, T * z.D);
}

static void norm(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                 const struct depth_values_scratch *s, int i) {
    struct shape z = shape_of(m);
    m->ops->rms_norm(z.T, z.D, node_output(m, x->edge[i].source), d->input.norm.w, m->config.norm_eps,
                     s->norm, s->rstd);
}

/* u of all sources: heads one after the other, so that each is a matrix of its own. */
static void map(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                const struct depth_values_scratch *s) {
    struct shape z = shape_of(m);
    for (int i = 0; i < x->n; i++) {
        norm(m, x, d, s, i);
        for (long k = 0; k < z.K; k++)
            m->ops->gemm('N', 'T', z.T, z.hd, z.D, 1, s->norm, z.D, d->input.map.w + k * z.hd * z.D, z.D, 0,
                         s->mapped + (i * z.K + k) * z.T * z.hd, z.hd);
    }
}

/* A head of all sources. */
static void list_head(const struct model *m, const struct rule_layer *x, long k, real *all, real **list) {
    struct shape z = shape_of(m);
    for (int i = 0; i < x->n; i++) list[i] = all + (i * z.K + k) * z.T * z.hd;
}

void depth_values_forward(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                          const struct depth_values_scratch *s) {
    struct shape z = shape_of(m);
    real *u[OPS_CONNECTIONS];
    map(m, x, d, s);
    for (long k = 0; k < z.K; k++) {
        list_head(m, x, k, s->mapped, u);
        m->ops->zero(z.T * z.hd, s->head);
        m->ops->depth_attention(z.T, x->n, z.hd, d->query.w + k * z.hd, (const real *const *)u,
                                m->config.norm_eps, d->lambda.w + k, s->head);
        m->ops->add_columns(z.T, z.hd, 1, s->head, z.hd, x->heads->at + k * z.hd, x->heads->ld);
    }
}

/* From dmapped of a source. What comes by way of its norm is summed over tensor ranks, each of which has its
 * heads' part; then each has all own rows for the norm's weights, and adds its terms for the source. */
static void leave(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                  const struct depth_values_scratch *s, int i) {
    const struct ops *ops = m->ops;
    struct shape z = shape_of(m);
    struct row_range terms = rule_terms(m);
    const real *h = node_output(m, x->edge[i].source);
    real *dh = source_gradient_of(m, x->edge[i].source);
    long own = m->row0 * z.D, at = terms.first * z.D;
    norm(m, x, d, s, i);
    for (long k = 0; k < z.K; k++) {
        const real *du = s->dmapped + (i * z.K + k) * z.T * z.hd;
        long rows = k * z.hd * z.D;
        weight_gradient(m, NO_WEIGHT_ID, z.hd, z.D, z.T, 1, du, z.hd, s->norm, z.D, d->input.map.g + rows,
                        z.D);
        ops->gemm('N', 'N', z.T, z.D, z.hd, 1, du, z.hd, d->input.map.w + rows, z.D, k > 0, s->dnorm, z.D);
    }
    block_sum(m, s->dnorm);
    ops->zero(z.T * z.D, s->dsource);
    ops->rms_norm_back(m->rows, z.D, h + own, d->input.norm.w, s->rstd + m->row0, s->dnorm + own,
                       s->dsource + own, d->input.norm.g);
    ops->add(terms.count * z.D, s->dsource + at, dh + at);
}

void depth_values_backward(struct model *m, const struct rule_layer *x, const struct depth_values *d,
                           const struct depth_values_scratch *s) {
    const struct ops *ops = m->ops;
    struct shape z = shape_of(m);
    real *u[OPS_CONNECTIONS], *du[OPS_CONNECTIONS];
    map(m, x, d, s);
    ops->zero(x->n * z.T * z.K * z.hd, s->dmapped);
    ops->zero(z.T * z.hd, s->zero);
    for (long k = 0; k < z.K; k++) {
        list_head(m, x, k, s->mapped, u);
        list_head(m, x, k, s->dmapped, du);
        ops->copy_columns(z.T, z.hd, x->heads->at + k * z.hd, x->heads->ld, s->head, z.hd);
        ops->depth_attention_back(z.T, x->n, z.hd, d->query.w + k * z.hd, (const real *const *)u,
                                  m->config.norm_eps, d->lambda.w + k, s->zero, s->head, du, s->dquery,
                                  s->dlambda);
        ops->add_column_sums(z.T, z.hd, s->dquery, z.hd, d->query.g + k * z.hd);
        ops->add_column_sums(z.T, 1, s->dlambda, 1, d->lambda.g + k);
    }
    for (int i = 0; i < x->n; i++) leave(m, x, d, s, i);
}
