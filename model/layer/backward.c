/* The backward pass of a layer. One gradient, m->g, walks down the residual stream and grows in place: at the
 * top of a layer it is the gradient of z, then of y, a and x. Over the tensor axis a norm's upstream gradient
 * dn is a sum over ranks; where rows are divided, m->g is kept up in the own rows and gathered for each
 * product, and so are the norms' outputs. */
#include "model/internal.h"

void gradient_whole(struct model *m) {
    if (!m->walk.whole) stream_whole(m, m->g);
    m->walk.whole = true;
}

/* From this rank's terms of dn [T, D], the gradient of a norm's output: adds to m->g. x: own rows. */
static void norm_backward(struct model *m, const real *x, struct tensor norm, const real *rstd, real *dn) {
    stream_sum(m, dn);
    m->ops->rms_norm_back(m->rows, m->config.hidden_size, x, norm.w, rstd, own_rows(m, dn), own_rows(m, m->g),
                          norm.g);
    m->walk.whole = !m->rows_divided;
}

static void mlp_backward(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, F = m->F;
    real *dn = m->t1;
    gradient_whole(m);
    ops->product(site_of(l, SITE_DOWN), 'N', 'N', T, F, D, 1, m->g, D, layer->down.w, F, 0, m->dh, F);
    ops->swiglu_back(T, F, layer->gu, m->dh, m->dgu, m->h);
    ops->product(site_of(l, SITE_DOWN), 'T', 'N', D, F, T, 1, m->g, D, m->h, F, 1, layer->down.g, F);
    ops->product(site_of(l, SITE_GATE_UP), 'N', 'N', T, D, 2 * F, 1, m->dgu, 2 * F, layer->gate_up.w, D, 0,
                 dn, D);
    ops->product(site_of(l, SITE_GATE_UP), 'T', 'N', 2 * F, D, T, 1, m->dgu, 2 * F, stream_all(m, layer->n2),
                 D, 1, layer->gate_up.g, D);
    norm_backward(m, layer->a, layer->norm2, layer->rstd2, dn);
}

static void attention_backward(struct model *m, int l, const real *x) {
    struct layer *layer = &m->layer[l];
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, H = m->H, K = m->K, hd = D / m->config.num_heads;
    long wide = (H + 2 * K) * hd;
    real *dattention = m->t1 /* [T, H·hd] */, *dn = m->t1;
    gradient_whole(m);
    ops->product(site_of(l, SITE_O), 'N', 'N', T, H * hd, D, 1, m->g, D, layer->o.w, H * hd, 0, dattention,
                 H * hd);
    ops->product(site_of(l, SITE_O), 'T', 'N', D, H * hd, T, 1, m->g, D, layer->attention, H * hd, 1,
                 layer->o.g, H * hd);
    ops->attention_back(m->B, m->S, H, K, hd, layer->qkv_out, layer->attention, layer->lse, dattention,
                        m->dqkv, m->work);
    ops->rope(T, m->S, 0, H + K, hd, m->cosine, m->sine, -1, m->dqkv, wide);
    ops->product(site_of(l, SITE_QKV), 'N', 'N', T, D, wide, 1, m->dqkv, wide, layer->qkv.w, D, 0, dn, D);
    ops->product(site_of(l, SITE_QKV), 'T', 'N', wide, D, T, 1, m->dqkv, wide, stream_all(m, layer->n1), D, 1,
                 layer->qkv.g, D);
    norm_backward(m, x, layer->norm1, layer->rstd1, dn);
}

void layer_backward(struct model *m, int l) {
    if (active_edges(&m->edges, l, m->pass->options->active)) {
        gradient_whole(m);
        open_deposits(m, l);
        recompute_connections(m, l);
        connections_backward(m, l, m->pass->options);
        m->walk.whole = !m->rows_divided;
    }
    recompute_layer(m, l);
    mlp_backward(m, l);
    attention_backward(m, l, node_rows(m, l - 1));
}

void embedding_backward(struct model *m) {
    gradient_whole(m);
    m->ops->embed_back(m->T, m->config.hidden_size, m->input, m->first_token, m->V, m->g, m->embed.g);
}
