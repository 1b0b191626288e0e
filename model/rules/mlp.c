/* Weights that each token has of its own, by a small MLP. */
#include "model/rules/mlp.h"
#include "model/params/stream.h"

static long width(const struct rule_layer *x) {
    return x->entry->settings->hidden;
}

struct leaf mlp_leaf(const struct model_config *config, const struct rule_config *settings) {
    struct leaf leaf =
        leaf_matrix("in.weight", SPLIT_NONE, settings->hidden, stream_width(config), LEAF_WIDTH);
    leaf.decays = false;
    return leaf;
}

double mlp_flops(const struct model_config *config, const struct rule_config *settings, double weights) {
    return 2.0 * settings->hidden * ((double)stream_width(config) + weights);
}

void mlp_find(const struct model *m, const struct rule_layer *x, struct mlp *mlp) {
    mlp->in = rule_find_shared(m, x, "in.weight");
}

void mlp_lay_out(struct model *m, const struct rule_layer *x, struct mlp *mlp, struct mlp *shared) {
    mlp->policy = x->policy;
    SAVE(m, mlp, shared, rstd, m->rows_max, POLICY_SELECTIVE);
    SAVE_BF16(m, mlp, shared, mapped, m->rows_max * width(x), POLICY_SELECTIVE);
}

void mlp_lay_out_scratch(struct model *m, const struct rule_config *settings, struct mlp_scratch *s) {
    long R = m->rows_max, H = settings->hidden;
    s->before = take(&m->scratch, R * H);
    s->hidden = take(&m->scratch, R * H);
    if (!m->training) return;
    s->dhidden = take(&m->scratch, R * H);
    s->drstd = take(&m->scratch, R);
    s->k = take(&m->scratch, R);
}

void mlp_again(struct model *m, const struct rule_layer *x, const struct mlp *mlp,
               const struct mlp_scratch *s) {
    long R = m->rows, H = width(x);
    m->ops->scale_connections(R, 1, H, mlp->rstd, mlp->mapped, s->before);
    m->ops->silu(R * H, s->before, s->hidden);
}

void mlp_forward(struct model *m, const struct rule_layer *x, const struct mlp *mlp,
                 const struct mlp_scratch *s) {
    const real *in = rule_rows(m, x);
    long R = m->rows, W = m->stream, H = width(x);
    m->ops->row_rstd(R, W, in, m->config.norm_eps, mlp->rstd);
    m->ops->gemm('N', 'T', R, H, W, 1, in, W, mlp->in.w, W, 0, mlp->mapped, H);
    mlp_again(m, x, mlp, s);
}

void mlp_weights(struct model *m, const struct rule_layer *x, const struct mlp_scratch *s, struct tensor out,
                 long n, real *a) {
    long H = width(x);
    m->ops->gemm('N', 'T', m->rows, n, H, 1, s->hidden, H, out.w, H, 1, a, n);
}

void mlp_weights_back(struct model *m, const struct rule_layer *x, const struct mlp_scratch *s,
                      struct tensor out, long n, const real *da, bool more) {
    struct row_range terms = rule_terms(m);
    long H = width(x), own = terms.first - m->row0;
    weight_gradient(m, NO_WEIGHT_ID, n, H, terms.count, 1, da + own * n, n, s->hidden + own * H, H, out.g, H);
    m->ops->gemm('N', 'N', m->rows, H, n, 1, da, n, out.w, H, more, s->dhidden, H);
}

void mlp_back(struct model *m, const struct rule_layer *x, const struct mlp *mlp,
              const struct mlp_scratch *s) {
    const struct ops *ops = m->ops;
    const real *in = rule_rows(m, x);
    real *din = stream_rows(m, m->g);
    struct row_range terms = rule_terms(m);
    long R = m->rows, W = m->stream, H = width(x), own = terms.first - m->row0;
    ops->silu_back(R * H, s->before, s->dhidden, s->dhidden);
    ops->sources_back(R, H, 1, 1, (const real *[]){mlp->rstd}, 1, (const real *[]){mlp->mapped},
                      (const real *[]){s->dhidden}, NULL, (real *[]){s->drstd}, 1);
    ops->scale_connections(R, 1, H, mlp->rstd, s->dhidden, s->before); /* now the gradient of V in */
    weight_gradient(m, NO_WEIGHT_ID, H, W, terms.count, 1, s->before + own * H, H, in + own * W, W, mlp->in.g,
                    W);
    ops->gemm('N', 'N', R, W, H, 1, s->before, H, mlp->in.w, W, 1, din, W);
    ops->row_rstd_back(R, W, mlp->rstd, s->drstd, s->k);
    ops->add_scaled_rows(R, W, s->k, in, din);
}
