/* Attention, a layer's token mixer: heads divided over the tensor axis. What goes in is a norm's output of
 * all rows, what comes out this rank's terms of a sum over ranks, forward and backward alike. */
#include "kernels/base/status.h"
#include "model/mixer/attention.h"

#include <math.h>
#include <stdlib.h>

void find_attention(const struct model *m, int l, struct attention *a) {
    a->qkv = find_tensor(m, "layers.%d.self_attn.q_proj.weight", l);
    a->o = find_tensor(m, "layers.%d.self_attn.o_proj.weight", l);
}

void lay_out_attention(struct model *m, struct attention *a, struct attention *shared, long T) {
    long hd = m->config.hidden_size / m->config.num_heads, H = m->attention->H, K = m->attention->K;
    SAVE(m, a, shared, qkv_out, T * (H + 2 * K) * hd, POLICY_FULL);
    SAVE(m, a, shared, out, T * H * hd, POLICY_FULL);
    SAVE(m, a, shared, lse, T * H, POLICY_FULL);
}

void lay_out_attention_scratch(struct model *m, long T, long positions) {
    struct attention_state *s = m->attention;
    long hd = m->config.hidden_size / m->config.num_heads;
    s->cosine = take(&m->scratch, positions * hd / 2);
    s->sine = take(&m->scratch, positions * hd / 2);
    if (!m->training) return;
    s->dqkv = take(&m->scratch, T * (s->H + 2 * s->K) * hd);
    s->work = take(&m->scratch, T * s->H);
}

/* cos and sin of position · theta^(−2i/hd) (Su et al. 2021). */
int fill_rotary(struct model *m, long positions) {
    long hd = m->config.hidden_size / m->config.num_heads, half = hd / 2;
    size_t bytes = (size_t)(positions * half) * sizeof(real);
    real *cosine = malloc(2 * bytes + 1), *sine = cosine + positions * half;
    if (!cosine) return gdn_fail(GDN_INTERNAL, "out of memory for the angles of %ld positions", positions);
    for (long s = 0; s < positions; s++)
        for (long i = 0; i < half; i++) {
            double angle = (double)s * pow(m->config.rope_theta, -2.0 * (double)i / (double)hd);
            cosine[s * half + i] = (real)cos(angle);
            sine[s * half + i] = (real)sin(angle);
        }
    m->ops->device->upload(m->attention->cosine, cosine, bytes);
    m->ops->device->upload(m->attention->sine, sine, bytes);
    free(cosine);
    return 0;
}

/* One new token: its key and value join the cache, its query reads all of it. */
static void attend_cached(struct model *m, int l, struct attention *a) {
    struct cache *cache = m->attention->cache;
    long hd = m->config.hidden_size / m->config.num_heads, H = m->attention->H, K = m->attention->K;
    const real *qkv = a->qkv_out;
    m->ops->copy(K * hd, qkv + H * hd, cache->keys[l] + cache->length * K * hd);
    m->ops->copy(K * hd, qkv + (H + K) * hd, cache->values[l] + cache->length * K * hd);
    m->ops->attention_decode(cache->length + 1, H, K, hd, qkv, cache->keys[l], cache->values[l], a->out);
}

void attention_forward(struct model *m, int l, struct attention *a, const real *n, real *out) {
    const struct ops *ops = m->ops;
    const struct attention_state *s = m->attention;
    long T = m->T, D = m->config.hidden_size, H = s->H, K = s->K, hd = D / m->config.num_heads;
    long wide = (H + 2 * K) * hd;
    ops->linear(weight_id(l, WEIGHT_QKV), 'N', 'T', T, wide, D, 1, n, D, a->qkv.w, D, 0, a->qkv_out, wide);
    ops->rope(T, m->S, s->cache ? s->cache->length : 0, H + K, hd, s->cosine, s->sine, 1, a->qkv_out, wide);
    if (s->cache)
        attend_cached(m, l, a);
    else
        ops->attention(m->B, m->S, H, K, hd, a->qkv_out, a->out, a->lse);
    if (!out) return;
    ops->linear(weight_id(l, WEIGHT_O), 'N', 'T', T, D, H * hd, 1, a->out, H * hd, a->o.w, H * hd, 0, out, D);
}

void attention_backward(struct model *m, int l, struct attention *a, const real *dout, const real *n,
                        real *dn) {
    const struct ops *ops = m->ops;
    const struct attention_state *s = m->attention;
    long T = m->T, D = m->config.hidden_size, H = s->H, K = s->K, hd = D / m->config.num_heads;
    long wide = (H + 2 * K) * hd;
    real *da = dn; /* [T, H·hd] gradient of a->out, used up before dn is written */
    ops->linear(weight_id(l, WEIGHT_O), 'N', 'N', T, H * hd, D, 1, dout, D, a->o.w, H * hd, 0, da, H * hd);
    ops->linear(weight_id(l, WEIGHT_O), 'T', 'N', D, H * hd, T, 1, dout, D, a->out, H * hd, 1, a->o.g,
                H * hd);
    ops->attention_back(m->B, m->S, H, K, hd, a->qkv_out, a->out, a->lse, da, s->dqkv, s->work);
    ops->rope(T, m->S, 0, H + K, hd, s->cosine, s->sine, -1, s->dqkv, wide);
    ops->linear(weight_id(l, WEIGHT_QKV), 'N', 'N', T, D, wide, 1, s->dqkv, wide, a->qkv.w, D, 0, dn, D);
    ops->linear(weight_id(l, WEIGHT_QKV), 'T', 'N', wide, D, T, 1, s->dqkv, wide, n, D, 1, a->qkv.g, D);
}
