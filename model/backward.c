/* The backward pass. One gradient, m->g, walks down the residual stream and grows in place: at the top of a
 * layer it is the gradient of z, then of y, a and x. Delta connections leave gradients at their sources
 * (`deposit`), by descending target layer, which join when the walk reaches the source. */
#include "model/internal.h"

static void mlp_backward(struct model *m, struct layer *layer) {
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, F = m->config.intermediate_size;
    real *dn = m->t1;
    ops->gemm('N', 'N', T, F, D, 1, m->g, D, layer->down.w, F, 0, m->dh, F);
    ops->swiglu_back(T, F, layer->gu, m->dh, m->dgu, m->h);
    ops->gemm('T', 'N', D, F, T, 1, m->g, D, m->h, F, 1, layer->down.g, F);
    ops->gemm('N', 'N', T, D, 2 * F, 1, m->dgu, 2 * F, layer->gate_up.w, D, 0, dn, D);
    ops->gemm('T', 'N', 2 * F, D, T, 1, m->dgu, 2 * F, layer->n2, D, 1, layer->gate_up.g, D);
    ops->rms_norm_back(T, D, layer->a, layer->norm2.w, layer->rstd2, dn, m->g, layer->norm2.g);
}

static void attention_backward(struct model *m, struct layer *layer, const real *x) {
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, H = m->config.num_heads, K = m->config.num_kv_heads, hd = D / H;
    long wide = (H + 2 * K) * hd;
    real *dattention = m->t1, *dn = m->t1;
    ops->gemm('N', 'N', T, D, D, 1, m->g, D, layer->o.w, D, 0, dattention, D);
    ops->gemm('T', 'N', D, D, T, 1, m->g, D, layer->attention, D, 1, layer->o.g, D);
    ops->attention_back(m->B, m->S, H, K, hd, layer->qkv_out, layer->attention, layer->lse, dattention,
                        m->dqkv, m->work);
    ops->rope(T, m->S, 0, H + K, hd, m->cosine, m->sine, -1, m->dqkv, wide);
    ops->gemm('N', 'N', T, D, wide, 1, m->dqkv, wide, layer->qkv.w, D, 0, dn, D);
    ops->gemm('T', 'N', wide, D, T, 1, m->dqkv, wide, layer->n1, D, 1, layer->qkv.g, D);
    ops->rms_norm_back(T, D, x, layer->norm1.w, layer->rstd1, dn, m->g, layer->norm1.g);
}

/* Adds what later layers have left at a node. */
static void collect(struct model *m, int node) {
    if (m->deposit[node + 1]) m->ops->add(m->T * m->config.hidden_size, m->deposit[node + 1], m->g);
}

void model_backward(struct model *m, const struct loss_options *options) {
    long n = m->T * m->config.hidden_size;
    for (int i = 0; i <= m->config.num_layers; i++)
        if (m->deposit[i]) m->ops->zero(n, m->deposit[i]);
    for (int l = m->config.num_layers - 1; l >= 0; l--) {
        connections_backward(m, l, options);
        mlp_backward(m, &m->layer[l]);
        attention_backward(m, &m->layer[l], node_output(m, l - 1));
        collect(m, l - 1);
    }
    m->ops->embed_back(m->T, m->config.hidden_size, m->input, m->g, m->embed.g);
}
