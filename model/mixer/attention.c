/* Softmax attention with rotary positions, the mixer of a transformer: heads divided over the tensor axis. In
 * shapes H and K are this rank's heads and key/value heads of width hd. */
#include "kernels/base/status.h"
#include "model/base/dropout.h"
#include "model/mixer/mixer.h"

#include <math.h>
#include <stdlib.h>

enum { WEIGHT_QKV, WEIGHT_O, WEIGHTS };

/* Of one layer, and what a micro-batch saves of it. */
struct attention {
    int policy; /* the layer's */
    struct tensor qkv, o;
    real *qkv_out;   /* [T, (H+2K)·hd], rotated */
    real *out, *lse; /* [T, H·hd], [B, H, S] */
};

struct common {
    real *cosine, *sine; /* [positions, hd/2] */
    /* Scratch of the backward pass. */
    real *dqkv; /* [T, (H+2K)·hd] */
    real *work; /* [B, H, S] */
};

/* Keys and values of the tokens so far. */
struct cache {
    long length;
    real *keys, *values; /* [capacity, K·hd] */
};

struct shape {
    long D, H, K, hd, wide; /* wide: a row of q, k and v */
};

static struct shape shape_of(const struct model *m) {
    const struct model_config *c = &m->config;
    long hd = c->hidden_size / c->num_heads, H = c->num_heads / m->layout.size[AXIS_TENSOR],
         K = c->num_kv_heads / m->layout.size[AXIS_TENSOR];
    return (struct shape){.D = c->hidden_size, .H = H, .K = K, .hd = hd, .wide = (H + 2 * K) * hd};
}

static int leaves(const struct model_config *c, struct leaf *leaf) {
    long D = c->hidden_size, kv = D / c->num_heads * c->num_kv_heads;
    int n = 0, queries = n; /* q, k, v: one GEMM; whole heads each */
    leaf[n++] = leaf_matrix("self_attn.q_proj.weight", SPLIT_ROWS, D, D, LEAF_WIDTH);
    leaf[n] = leaf_matrix("self_attn.k_proj.weight", SPLIT_ROWS, kv, D, LEAF_WIDTH), leaf[n++].joined = true;
    leaf[n] = leaf_matrix("self_attn.v_proj.weight", SPLIT_ROWS, kv, D, LEAF_WIDTH), leaf[n++].joined = true;
    for (int i = queries; i < n; i++) leaf[i].heads = i == queries ? c->num_heads : c->num_kv_heads;
    leaf[n++] = leaf_matrix("self_attn.o_proj.weight", SPLIT_COLUMNS, D, D, leaf_output_width(c->num_layers));
    return n;
}

static double flops(const struct model_config *c, long length) {
    double D = c->hidden_size, kv = D / c->num_heads * c->num_kv_heads;
    return 2 * (2 * D * D + 2 * D * kv) + 2 * 2 * D * (double)(length + 1) / 2; /* the causal half */
}

static long place_width(const struct model_config *c, enum rule_place place) {
    int heads = place == PLACE_QUERY ? c->num_heads : place >= PLACE_KEY ? c->num_kv_heads : 0;
    return (long)heads * (c->hidden_size / c->num_heads);
}

static const struct conflict *conflict(const struct model_config *c, int tensor) {
    static const struct conflict width = {"hidden_size must be a multiple of 2 x num_heads, so that heads "
                                          "have an even width (rotary positions turn "
                                          "pairs of channels)",
                                          {"model.hidden_size", "model.num_heads"}};
    static const struct conflict shared = {"num_heads must be a multiple of num_kv_heads",
                                           {"model.num_heads", "model.num_kv_heads"}};
    static const struct conflict divided = {
        "each tensor rank needs as many heads as the others: tensor must divide both",
        {"mesh.tensor", "model.num_heads", "model.num_kv_heads"}};
    if (c->hidden_size % c->num_heads || c->hidden_size / c->num_heads % 2) return &width;
    if (c->num_heads % c->num_kv_heads) return &shared;
    return c->num_heads % tensor || c->num_kv_heads % tensor ? &divided : NULL;
}

static int validate_device(const struct model_config *c, const struct ops *ops) {
    int width = c->hidden_size / c->num_heads;
    if (ops->device->host || width <= OPS_WIDEST_HEAD) return 0;
    return gdn_fail(
        GDN_INPUT,
        "model.hidden_size: %d and model.num_heads: %d make heads %d wide; on device %s they are at most %d",
        c->hidden_size, c->num_heads, width, ops->name, OPS_WIDEST_HEAD);
}

static void find(const struct model *m, const struct mixing *x) {
    struct attention *a = x->own;
    a->qkv = find_tensor(m, "layers.%d.self_attn.q_proj.weight", x->layer);
    a->o = find_tensor(m, "layers.%d.self_attn.o_proj.weight", x->layer);
}

static void lay_out(struct model *m, const struct mixing *x, void *shared_of_row, long T) {
    struct attention *a = x->own, *shared = shared_of_row;
    struct shape z = shape_of(m);
    a->policy = x->policy;
    SAVE(m, a, shared, qkv_out, T * z.wide, POLICY_FULL);
    SAVE(m, a, shared, out, T * z.H * z.hd, POLICY_FULL);
    SAVE(m, a, shared, lse, T * z.H, POLICY_FULL);
}

static void lay_out_scratch(struct model *m, void *common, long T, long positions) {
    struct common *s = common;
    struct shape z = shape_of(m);
    s->cosine = take(&m->scratch, positions * z.hd / 2);
    s->sine = take(&m->scratch, positions * z.hd / 2);
    if (!m->training) return;
    s->dqkv = take(&m->scratch, T * z.wide);
    s->work = take(&m->scratch, T * z.H);
}

/* cos and sin of position · theta^(−2i/hd) (Su et al. 2021). */
static int fill_rotary(struct model *m, void *common, long positions) {
    const struct common *s = common;
    long hd = m->config.hidden_size / m->config.num_heads, half = hd / 2;
    size_t bytes = (size_t)(positions * half) * sizeof(real);
    real *cosine = malloc(2 * bytes + 1), *sine = cosine + positions * half;
    if (!cosine) return gdn_fail(GDN_INTERNAL, "out of memory for the angles of %ld positions", positions);
    for (long p = 0; p < positions; p++)
        for (long i = 0; i < half; i++) {
            double angle = (double)p * pow(m->config.rope_theta, -2.0 * (double)i / (double)hd);
            cosine[p * half + i] = (real)cos(angle);
            sine[p * half + i] = (real)sin(angle);
        }
    m->ops->device->upload(s->cosine, cosine, bytes);
    m->ops->device->upload(s->sine, sine, bytes);
    free(cosine);
    return 0;
}

typedef void enter(struct model *m, int layer, enum rule_place place, const struct heads *heads);

/* What enters the queries, keys and values of qkv [T, (H+2K)·hd], or takes its part of their gradients. */
static void enter_places(struct model *m, const struct mixing *x, enter *call, real *qkv, const real *n,
                         real *dn) {
    struct shape z = shape_of(m);
    struct heads heads = {.at = qkv, .width = z.hd, .ld = z.wide, .n = n, .dn = dn};
    for (enum rule_place place = PLACE_QUERY; place <= PLACE_VALUE; place++) {
        heads.count = place == PLACE_QUERY ? z.H : z.K;
        call(m, x->layer, place, &heads);
        heads.at += heads.count * z.hd;
    }
}

/* Queries, keys and values, rotated; the first token's position is `position`. */
static void project(struct model *m, const struct mixing *x, const real *n, long position) {
    const struct attention *a = x->own;
    const struct common *s = x->common;
    struct shape z = shape_of(m);
    m->ops->linear(x->weight + WEIGHT_QKV, 'N', 'T', m->T, z.wide, z.D, 1, n, z.D, a->qkv.w, z.D, 0,
                   a->qkv_out, z.wide);
    if (x->inlet) enter_places(m, x, x->inlet->forward, a->qkv_out, n, NULL);
    m->ops->rope(m->T, m->S, position, z.H + z.K, z.hd, s->cosine, s->sine, 1, a->qkv_out, z.wide);
}

static void project_out(struct model *m, const struct mixing *x, real *out) {
    const struct attention *a = x->own;
    struct shape z = shape_of(m);
    m->ops->linear(x->weight + WEIGHT_O, 'N', 'T', m->T, z.D, z.H * z.hd, 1, a->out, z.H * z.hd, a->o.w,
                   z.H * z.hd, 0, out, z.D);
}

/* What is dropped of this rank's heads; NULL: nothing. */
static const struct mask *mask_of(const struct model *m, const struct mixing *x, struct mask *mask) {
    const double rate = m->config.dropout.attention;
    if (!drops(m, rate)) return NULL;
    *mask = dropout_mask(m, DROP_ATTENTION, x->layer, 0, rate, 0);
    mask->head = (uint64_t)(m->tensor->index * shape_of(m).H);
    return mask;
}

static void again(struct model *m, const struct mixing *x, const real *n) {
    const struct attention *a = x->own;
    struct shape z = shape_of(m);
    struct mask mask;
    project(m, x, n, 0);
    m->ops->attention(m->B, m->S, z.H, z.K, z.hd, mask_of(m, x, &mask), a->qkv_out, a->out, a->lse);
}

static void forward(struct model *m, const struct mixing *x, const real *n, real *out) {
    again(m, x, n);
    project_out(m, x, out);
}

static void backward(struct model *m, const struct mixing *x, const real *dout, const real *n, real *dn) {
    const struct ops *ops = m->ops;
    const struct attention *a = x->own;
    const struct common *s = x->common;
    struct shape z = shape_of(m);
    long T = m->T, D = z.D, own = z.H * z.hd, wide = z.wide;
    int qkv = x->weight + WEIGHT_QKV, o = x->weight + WEIGHT_O;
    real *da = dn; /* [T, H·hd] gradient of a->out, used up before dn is written */
    ops->linear(o, 'N', 'N', T, own, D, 1, dout, D, a->o.w, own, 0, da, own);
    ops->linear(o, 'T', 'N', D, own, T, 1, dout, D, a->out, own, 1, a->o.g, own);
    struct mask mask;
    ops->attention_back(m->B, m->S, z.H, z.K, z.hd, mask_of(m, x, &mask), a->qkv_out, a->out, a->lse, da,
                        s->dqkv, s->work);
    ops->rope(T, m->S, 0, z.H + z.K, z.hd, s->cosine, s->sine, -1, s->dqkv, wide);
    if (x->inlet) {
        ops->zero(T * D, dn);
        enter_places(m, x, x->inlet->backward, s->dqkv, n, dn);
    }
    ops->linear(qkv, 'N', 'N', T, D, wide, 1, s->dqkv, wide, a->qkv.w, D, x->inlet ? 1 : 0, dn, D);
    ops->linear(qkv, 'T', 'N', wide, D, T, 1, s->dqkv, wide, n, D, 1, a->qkv.g, D);
}

static void lay_out_decode(struct model *m, const struct mixing *x, struct arena *arena, long capacity) {
    struct cache *cache = x->decode;
    struct shape z = shape_of(m);
    cache->keys = take(arena, capacity * z.K * z.hd);
    cache->values = take(arena, capacity * z.K * z.hd);
}

static void reset(struct model *m, const struct mixing *x) {
    struct cache *cache = x->decode;
    (void)m;
    cache->length = 0;
}

/* The token's key and value join the cache, its query reads all of it. */
static void step(struct model *m, const struct mixing *x, const real *n, real *out) {
    const struct attention *a = x->own;
    struct cache *cache = x->decode;
    struct shape z = shape_of(m);
    long one = z.K * z.hd;
    project(m, x, n, cache->length);
    m->ops->copy(one, a->qkv_out + z.H * z.hd, cache->keys + cache->length * one);
    m->ops->copy(one, a->qkv_out + z.H * z.hd + one, cache->values + cache->length * one);
    cache->length++;
    m->ops->attention_decode(cache->length, z.H, z.K, z.hd, a->qkv_out, cache->keys, cache->values, a->out);
    project_out(m, x, out);
}

const struct mixer mixer_attention = {
    .name = "attention",
    .own_bytes = sizeof(struct attention),
    .common_bytes = sizeof(struct common),
    .decode_bytes = sizeof(struct cache),
    .weights = WEIGHTS,
    .leaves = leaves,
    .flops = flops,
    .place_width = place_width,
    .conflict = conflict,
    .validate_device = validate_device,
    .find = find,
    .lay_out = lay_out,
    .lay_out_scratch = lay_out_scratch,
    .fill = fill_rotary,
    .forward = forward,
    .backward = backward,
    .again = again,
    .again_from = POLICY_FULL,
    .lay_out_decode = lay_out_decode,
    .reset = reset,
    .step = step,
};
