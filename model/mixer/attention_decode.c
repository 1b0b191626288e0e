/* Generation by attention: keys and values of the tokens so far are kept, and a new token's query reads them
 * all. */
#include "model/mixer/attention.h"

void attention_lay_out_decode(struct model *m, const struct mixing *x, struct arena *arena, long capacity) {
    struct attention_cache *cache = x->decode;
    struct attention_shape z = attention_shape_of(m);
    cache->keys = take(arena, capacity * z.K * z.hd);
    cache->values = take(arena, capacity * z.K * z.hd);
}

void attention_reset(struct model *m, const struct mixing *x) {
    struct attention_cache *cache = x->decode;
    (void)m;
    cache->length = 0;
}

void attention_rewind(const struct mixing *x, long length) {
    struct attention_cache *cache = x->decode;
    if (cache->length > length) cache->length = length;
}

/* Key and value of the pass's token t join the cache. */
static void remember(struct model *m, const struct mixing *x, long t) {
    const struct attention *a = x->own;
    struct attention_cache *cache = x->decode;
    struct attention_shape z = attention_shape_of(m);
    long one = z.K * z.hd;
    const real *key = a->qkv_out + t * z.wide + z.H * z.hd;
    m->ops->copy(one, key, cache->keys + cache->length * one);
    m->ops->copy(one, key + one, cache->values + cache->length * one);
    cache->length++;
}

/* As attention_project, but without queries, of which norms and what rules add are not looked at. */
void attention_pass_by(struct model *m, const struct mixing *x, const real *n) {
    const struct attention *a = x->own;
    const struct attention_common *s = x->common;
    const struct attention_cache *cache = x->decode;
    struct attention_shape z = attention_shape_of(m);
    long q = z.H * z.hd, kv = 2 * z.K * z.hd;
    m->ops->gemm('N', 'T', 1, kv, z.D, 1, n, z.D, a->qkv.w + q * z.D, z.D, 0, a->qkv_out + q, z.wide);
    if (a->qkv_bias.w) m->ops->add_columns(1, kv, 1, a->qkv_bias.w + q, 0, a->qkv_out + q, z.wide);
    if (s->norm) head_norm_forward(m, &a->norm, &(struct head_rows){a->qkv_out, z.H, z.K, z.hd}, s->norm);
    m->ops->rope(1, 1, cache->length, NULL, z.K, z.hd, s->cosine, s->sine, 1, a->qkv_out + q, z.wide);
    remember(m, x, 0);
}

/* And each token's query reads all that there are up to its own: no other sum than of tokens one by one. */
void attention_step(struct model *m, const struct mixing *x, const real *n, real *out) {
    const struct attention *a = x->own;
    const struct attention_cache *cache = x->decode;
    struct attention_shape z = attention_shape_of(m);
    attention_project(m, x, n, cache->length);
    for (long t = 0; t < m->T; t++) {
        remember(m, x, t);
        m->ops->attention_decode(cache->length, z.H, z.K, z.hd, a->qkv_out + t * z.wide, cache->keys,
                                 cache->values, a->out + t * z.H * z.hd);
    }
    attention_project_out(m, x, out);
}
