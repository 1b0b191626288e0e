/* The forward pass (model.md, 1): embedding, layers, and between them the delta connections. */
#include "model/internal.h"

/* One new token: its key and value join the cache, its query reads all of it. */
static void attend_cached(struct model *m, int l) {
    struct cache *cache = m->cache;
    long hd = m->config.hidden_size / m->config.num_heads, H = m->config.num_heads,
         K = m->config.num_kv_heads;
    const real *qkv = m->layer[l].qkv_out;
    m->ops->copy(K * hd, qkv + H * hd, cache->keys[l] + cache->length * K * hd);
    m->ops->copy(K * hd, qkv + (H + K) * hd, cache->values[l] + cache->length * K * hd);
    m->ops->attention_decode(cache->length + 1, H, K, hd, qkv, cache->keys[l], cache->values[l],
                             m->layer[l].attention);
}

static void layer_forward(struct model *m, int l) {
    const struct model_config *c = &m->config;
    const struct ops *ops = m->ops;
    struct layer *layer = &m->layer[l];
    const real *x = node_output(m, l - 1);
    long T = m->T, D = c->hidden_size, F = c->intermediate_size, H = c->num_heads, K = c->num_kv_heads,
         hd = D / H;
    long wide = (H + 2 * K) * hd;
    ops->rms_norm(T, D, x, layer->norm1.w, c->norm_eps, layer->n1, layer->rstd1);
    ops->gemm('N', 'T', T, wide, D, 1, layer->n1, D, layer->qkv.w, D, 0, layer->qkv_out, wide);
    ops->rope(T, m->S, m->cache ? m->cache->length : 0, H + K, hd, m->cosine, m->sine, 1, layer->qkv_out,
              wide);
    if (m->cache)
        attend_cached(m, l);
    else
        ops->attention(m->B, m->S, H, K, hd, layer->qkv_out, layer->attention, layer->lse);
    ops->gemm('N', 'T', T, D, D, 1, layer->attention, D, layer->o.w, D, 0, m->t1, D);
    ops->add_rms_norm(T, D, x, m->t1, layer->norm2.w, c->norm_eps, layer->a, layer->n2, layer->rstd2);
    ops->gemm('N', 'T', T, 2 * F, D, 1, layer->n2, D, layer->gate_up.w, D, 0, layer->gu, 2 * F);
    ops->swiglu(T, F, layer->gu, m->h);
    ops->gemm('N', 'T', T, D, F, 1, m->h, F, layer->down.w, F, 0, m->t1, D);
    ops->add_to(T * D, layer->a, m->t1, layer->y);
}

void model_forward(struct model *m, const struct loss_options *options, struct loss_sums *sums) {
    m->ops->embed(m->T, m->config.hidden_size, m->input, m->embed.w, m->x0);
    for (int l = 0; l < m->config.num_layers; l++) {
        layer_forward(m, l);
        connections_forward(m, l, options, sums);
    }
}

/* Cuts rows of S+1 tokens into inputs and targets and runs forward and, with gradients, backward. */
static void run(struct model *m, const int32_t *rows, long batch, long length,
                const struct loss_options *options, bool gradients, struct loss_sums *out) {
    *out = (struct loss_sums){0};
    m->B = batch, m->S = length, m->T = batch * length;
    m->gradients = gradients;
    for (long b = 0; b < batch; b++)
        for (long s = 0; s < length; s++) {
            m->input[b * length + s] = rows[b * (length + 1) + s];
            m->target[b * length + s] = rows[b * (length + 1) + s + 1];
        }
    for (int l = 0; l < m->config.num_layers; l++)
        out->connections += active_edges(&m->edges, l, options->active);
    model_forward(m, options, out);
    head_loss(m, node_output(m, m->config.num_layers - 1), options, gradients, out);
    if (gradients) model_backward(m, options);
}

void model_train(struct model *model, const int32_t *rows, long batch, long length,
                 const struct loss_options *options, struct loss_sums *out) {
    run(model, rows, batch, length, options, true, out);
}

void model_loss(struct model *model, const int32_t *rows, long batch, long length,
                const struct loss_options *options, struct loss_sums *out) {
    run(model, rows, batch, length, options, false, out);
}
