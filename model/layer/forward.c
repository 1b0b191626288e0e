/* The forward pass (model.md, 1) of the embedding and of a layer without its delta connections. Over the
 * tensor axis heads, MLP channels and vocabulary are divided: o_proj and down_proj give this rank's terms of
 * a sum, and so does the embedding, of the tokens that are elsewhere zeros. */
#include "model/internal.h"

/* One new token: its key and value join the cache, its query reads all of it. */
static void attend_cached(struct model *m, int l) {
    struct cache *cache = m->cache;
    long hd = m->config.hidden_size / m->config.num_heads, H = m->H, K = m->K;
    const real *qkv = m->layer[l].qkv_out;
    m->ops->copy(K * hd, qkv + H * hd, cache->keys[l] + cache->length * K * hd);
    m->ops->copy(K * hd, qkv + (H + K) * hd, cache->values[l] + cache->length * K * hd);
    m->ops->attention_decode(cache->length + 1, H, K, hd, qkv, cache->keys[l], cache->values[l],
                             m->layer[l].attention);
}

void norm_rows(struct model *m, const real *x, struct tensor norm, real *n, real *rstd) {
    m->ops->rms_norm(m->rows, m->config.hidden_size, x, norm.w, m->config.norm_eps, n, rstd);
    stream_written(m, n);
}

void layer_attend(struct model *m, int l) {
    const struct ops *ops = m->ops;
    struct layer *layer = &m->layer[l];
    long T = m->T, D = m->config.hidden_size, H = m->H, K = m->K, hd = D / m->config.num_heads;
    long wide = (H + 2 * K) * hd;
    ops->product(site_of(l, SITE_QKV), 'N', 'T', T, wide, D, 1, stream_all(m, layer->n1), D, layer->qkv.w, D,
                 0, layer->qkv_out, wide);
    ops->rope(T, m->S, m->cache ? m->cache->length : 0, H + K, hd, m->cosine, m->sine, 1, layer->qkv_out,
              wide);
    if (m->cache)
        attend_cached(m, l);
    else
        ops->attention(m->B, m->S, H, K, hd, layer->qkv_out, layer->attention, layer->lse);
}

void layer_expand(struct model *m, int l) {
    struct layer *layer = &m->layer[l];
    long T = m->T, D = m->config.hidden_size, F = m->F;
    m->ops->product(site_of(l, SITE_GATE_UP), 'N', 'T', T, 2 * F, D, 1, stream_all(m, layer->n2), D,
                    layer->gate_up.w, D, 0, layer->gu, 2 * F);
}

void layer_forward(struct model *m, int l) {
    const struct ops *ops = m->ops;
    struct layer *layer = &m->layer[l];
    long T = m->T, D = m->config.hidden_size, F = m->F, wide = m->H * (D / m->config.num_heads);
    const real *x = node_rows(m, l - 1);
    real *sum = own_rows(m, m->t1), *y = layer->connections.n ? layer->y : node_rows(m, l);
    norm_rows(m, x, layer->norm1, layer->n1, layer->rstd1);
    layer_attend(m, l);
    ops->product(site_of(l, SITE_O), 'N', 'T', T, D, wide, 1, layer->attention, wide, layer->o.w, wide, 0,
                 m->t1, D);
    stream_sum(m, m->t1);
    ops->add_rms_norm(m->rows, D, x, sum, layer->norm2.w, m->config.norm_eps, layer->a, layer->n2,
                      layer->rstd2);
    stream_written(m, layer->n2);
    layer_expand(m, l);
    ops->swiglu(T, F, layer->gu, m->h);
    ops->product(site_of(l, SITE_DOWN), 'N', 'T', T, D, F, 1, m->h, F, layer->down.w, F, 0, m->t1, D);
    stream_sum(m, m->t1);
    ops->add_to(m->rows * D, layer->a, sum, y);
    stream_written(m, y);
    hold_layer(m, l);
}

void embedding_forward(struct model *m) {
    long D = m->config.hidden_size;
    real *terms = m->slot->x0 ? m->slot->x0 : m->t1;
    m->ops->embed(m->T, D, m->input, m->first_token, m->V, m->embed.w, terms);
    stream_sum(m, terms);
    if (!m->slot->x0) m->ops->copy(m->rows * D, own_rows(m, terms), node_rows(m, -1));
}
