/* Softmax attention with rotary positions, the mixer of a transformer: heads divided over the tensor axis. In
 * shapes H and K are this rank's heads and key/value heads of width hd. */
#include "kernels/base/status.h"
#include "model/base/dropout.h"
#include "model/base/terms.h"
#include "model/mixer/context.h"
#include "model/mixer/head_norm.h"
#include "model/mixer/mixer.h"
#include "model/mixer/rotary.h"

#include <math.h>
#include <stdlib.h>

enum { WEIGHT_QKV, WEIGHT_O, WEIGHTS };

/* Of one layer, and what a micro-batch saves of it. */
struct attention {
    int policy; /* the layer's */
    struct tensor qkv, o;
    struct tensor qkv_bias, o_bias; /* [(H+2K)·hd], [D], where there are any */
    struct head_norm norm;
    real *qkv_out;   /* [T, (H+2K)·hd], rotated */
    real *out, *lse; /* [T, H·hd], [B, H, S] */
};

struct common {
    real *cosine, *sine; /* [positions, hd/2] */
    /* Scratch of the backward pass. */
    real *dqkv; /* [T, (H+2K)·hd] */
    real *work; /* [B, H, S] */
    real *dout; /* [T, H·hd] gradient of a layer's out; NULL where it fits into dn */
    real *norm; /* [T, H·hd] of head_norm, forward too; NULL where there is none */
    struct context context; /* with several context ranks */
};

/* Keys and values of the tokens so far. */
struct cache {
    long length;
    real *keys, *values; /* [capacity, K·hd] */
};

struct shape {
    long D, H, K, hd, wide; /* wide: a row of q, k and v */
    struct context_heads heads;
};

static struct shape shape_of(const struct model *m) {
    const struct model_config *c = &m->config;
    long hd = head_width(c), H = c->num_heads / m->layout.size[AXIS_TENSOR],
         K = c->num_kv_heads / m->layout.size[AXIS_TENSOR];
    const struct context_heads heads = {H, K, hd, (H + 2 * K) * hd};
    return (struct shape){.D = c->hidden_size, .H = H, .K = K, .hd = hd, .wide = heads.wide, .heads = heads};
}

static int leaves(const struct model_config *c, struct leaf *leaf) {
    long D = c->hidden_size, hd = head_width(c), q = hd * c->num_heads, kv = hd * c->num_kv_heads;
    int n = 0, queries = n; /* q, k, v: one GEMM; whole heads each */
    leaf[n++] = leaf_matrix("self_attn.q_proj.weight", SPLIT_ROWS, q, D, LEAF_WIDTH);
    leaf[n] = leaf_matrix("self_attn.k_proj.weight", SPLIT_ROWS, kv, D, LEAF_WIDTH), leaf[n++].joined = true;
    leaf[n] = leaf_matrix("self_attn.v_proj.weight", SPLIT_ROWS, kv, D, LEAF_WIDTH), leaf[n++].joined = true;
    for (int i = queries; i < n; i++) leaf[i].heads = i == queries ? c->num_heads : c->num_kv_heads;
    if (c->attention_bias != BIAS_NONE) {
        leaf[n++] = leaf_vector("self_attn.q_proj.bias", SPLIT_ROWS, q, 0);
        leaf[n] = leaf_vector("self_attn.k_proj.bias", SPLIT_ROWS, kv, 0), leaf[n++].joined = true;
        leaf[n] = leaf_vector("self_attn.v_proj.bias", SPLIT_ROWS, kv, 0), leaf[n++].joined = true;
    }
    n += head_norm_leaves(c, leaf + n);
    leaf[n++] = leaf_matrix("self_attn.o_proj.weight", SPLIT_COLUMNS, D, q, leaf_output_width(c->num_layers));
    if (c->attention_bias == BIAS_ALL) leaf[n++] = leaf_vector("self_attn.o_proj.bias", SPLIT_NONE, D, 0);
    return n;
}

static double flops(const struct model_config *c, long length) {
    double D = c->hidden_size, hd = head_width(c), q = hd * c->num_heads, kv = hd * c->num_kv_heads;
    return 2 * (2 * D * q + 2 * D * kv) + 2 * 2 * q * (double)(length + 1) / 2; /* the causal half */
}

static long place_width(const struct model_config *c, enum rule_place place) {
    int heads = place == PLACE_QUERY ? c->num_heads : place >= PLACE_KEY ? c->num_kv_heads : 0;
    return (long)heads * head_width(c);
}

static const struct conflict *conflict(const struct model_config *c, int tensor) {
    static const struct conflict width = {"hidden_size must be a multiple of 2 x num_heads, so that heads "
                                          "have an even width (rotary positions turn "
                                          "pairs of channels), or head_dim say their width",
                                          {"model.hidden_size", "model.num_heads"}};
    static const struct conflict odd = {
        "head_dim must be even, since rotary positions turn pairs of channels; or 0: hidden_size / num_heads",
        {"model.head_dim"}};
    static const struct conflict shared = {"num_heads must be a multiple of num_kv_heads",
                                           {"model.num_heads", "model.num_kv_heads"}};
    static const struct conflict divided = {
        "each tensor rank needs as many heads as the others: tensor must divide both",
        {"mesh.tensor", "model.num_heads", "model.num_kv_heads"}};
    static const struct conflict columns = {
        "each tensor rank needs as many columns as the others: tensor must divide hidden_size",
        {"mesh.tensor", "model.hidden_size"}};
    if (c->head_dim % 2) return &odd;
    if (!c->head_dim && (c->hidden_size % c->num_heads || c->hidden_size / c->num_heads % 2)) return &width;
    if (c->num_heads % c->num_kv_heads) return &shared;
    if (c->num_heads % tensor || c->num_kv_heads % tensor) return &divided;
    return c->hidden_size % tensor ? &columns : rotary_conflict(&c->rope_scaling);
}

static int validate_device(const struct model_config *c, const struct ops *ops) {
    int width = head_width(c);
    if (ops->device->host || width <= OPS_WIDEST_HEAD) return 0;
    if (c->head_dim)
        return gdn_fail(GDN_INPUT, "model.head_dim: %d; on device %s heads are at most %d wide", c->head_dim,
                        ops->name, OPS_WIDEST_HEAD);
    return gdn_fail(
        GDN_INPUT,
        "model.hidden_size: %d and model.num_heads: %d make heads %d wide; on device %s they are at most %d",
        c->hidden_size, c->num_heads, width, ops->name, OPS_WIDEST_HEAD);
}

static void find(const struct model *m, const struct mixing *x) {
    struct attention *a = x->own;
    a->qkv = find_tensor(m, "layers.%d.self_attn.q_proj.weight", x->layer);
    a->o = find_tensor(m, "layers.%d.self_attn.o_proj.weight", x->layer);
    head_norm_find(m, x->layer, &a->norm);
    if (m->config.attention_bias == BIAS_NONE) return;
    a->qkv_bias = find_tensor(m, "layers.%d.self_attn.q_proj.bias", x->layer);
    if (m->config.attention_bias == BIAS_ALL)
        a->o_bias = find_tensor(m, "layers.%d.self_attn.o_proj.bias", x->layer);
}

static void lay_out(struct model *m, const struct mixing *x, void *shared_of_row, long T) {
    struct attention *a = x->own, *shared = shared_of_row;
    struct shape z = shape_of(m);
    a->policy = x->policy;
    SAVE_BF16(m, a, shared, qkv_out, T * z.wide, POLICY_FULL);
    SAVE_BF16(m, a, shared, out, T * z.H * z.hd, POLICY_FULL);
    SAVE(m, a, shared, lse, T * z.H, POLICY_FULL);
    if (m->config.qk_norm == QK_NORM_NONE) return;
    SAVE_BF16(m, a, shared, norm.x, T * (z.H + z.K) * z.hd, POLICY_FULL);
    SAVE(m, a, shared, norm.rstd, T * (z.H + z.K), POLICY_FULL);
}

static void lay_out_scratch(struct model *m, void *common, long T, long positions) {
    struct common *s = common;
    struct shape z = shape_of(m);
    s->cosine = take(&m->scratch, positions * z.hd / 2);
    s->sine = take(&m->scratch, positions * z.hd / 2);
    context_lay_out(m, &s->context, &z.heads);
    s->norm = m->config.qk_norm == QK_NORM_NONE ? NULL : take(&m->scratch, T * z.H * z.hd);
    if (!m->training) return;
    s->dqkv = take(&m->scratch, T * z.wide);
    s->work = take(&m->scratch, T * z.H);
    s->dout = z.H * z.hd > z.D ? take(&m->scratch, T * z.H * z.hd) : NULL;
}

static int fill_rotary(struct model *m, void *common, long positions) {
    const struct common *s = common;
    long half = head_width(&m->config) / 2;
    size_t bytes = (size_t)(positions * half) * sizeof(real);
    real *cosine = malloc(2 * bytes + 1), *sine = cosine + positions * half;
    if (!cosine) return gdn_fail(GDN_INTERNAL, "out of memory for the angles of %ld positions", positions);
    for (long i = 0; i < half; i++) {
        double frequency = rotary_frequency(&m->config, i);
        for (long p = 0; p < positions; p++) {
            cosine[p * half + i] = (real)cos((double)p * frequency);
            sine[p * half + i] = (real)sin((double)p * frequency);
        }
    }
    m->ops->device->upload(s->cosine, cosine, bytes);
    m->ops->device->upload(s->sine, sine, bytes);
    free(cosine);
    return 0;
}

/* Is the place projected from n, by the mixer itself? */
static bool projects(const struct model *m, const struct mixing *x, enum rule_place place) {
    return !x->inlet || !x->inlet->instead(m, x->layer, place);
}

typedef void enter(struct model *m, int layer, enum rule_place place, const struct heads *heads);

/* What enters the queries, keys and values of qkv [T, (H+2K)·hd], or takes its part of their gradients. */
static void enter_places(struct model *m, const struct mixing *x, enter *call, real *qkv, const real *n,
                         real *dn) {
    struct shape z = shape_of(m);
    struct heads heads = {.at = qkv, .width = z.hd, .ld = z.wide, .n = n, .dn = dn};
    for (enum rule_place place = PLACE_QUERY; place <= PLACE_VALUE; place++) {
        heads.count = place == PLACE_QUERY ? z.H : z.K;
        heads.empty = !projects(m, x, place);
        call(m, x->layer, place, &heads);
        heads.at += heads.count * z.hd;
    }
}

/* Neighbouring columns of q, k and v that the mixer projects in one product. */
struct columns {
    long first, count;
    int weight_id; /* of all of them; of fewer NO_WEIGHT_ID */
};

/* The first such columns from `from` on; count 0: none. */
static struct columns next_columns(const struct model *m, const struct mixing *x, long from) {
    struct shape z = shape_of(m);
    struct columns next = {0, 0, NO_WEIGHT_ID};
    long first = 0;
    for (enum rule_place place = PLACE_QUERY; place <= PLACE_VALUE; place++) {
        long count = (place == PLACE_QUERY ? z.H : z.K) * z.hd;
        if (first >= from && projects(m, x, place)) {
            if (!next.count) next.first = first;
            next.count += count;
        } else if (next.count)
            break;
        first += count;
    }
    if (next.count == z.wide) next.weight_id = x->weight + WEIGHT_QKV;
    return next;
}

/* Positions of rows of q, k and v, or the way back of their gradient; the first token's is `position`. */
static void rotate(struct model *m, const struct common *s, long position, int direction, real *qkv) {
    const struct shape z = shape_of(m);
    if (context_cuts(m))
        context_rotate(m, &z.heads, s->cosine, s->sine, direction, qkv);
    else
        m->ops->rope(m->T, m->S, position, m->start, z.H + z.K, z.hd, s->cosine, s->sine, direction, qkv,
                     z.wide);
}

/* Queries, keys and values, normed and rotated; the first token's position is `position`. */
static void project(struct model *m, const struct mixing *x, const real *n, long position) {
    const struct attention *a = x->own;
    const struct common *s = x->common;
    struct shape z = shape_of(m);
    for (struct columns c = next_columns(m, x, 0); c.count; c = next_columns(m, x, c.first + c.count)) {
        real *out = a->qkv_out + c.first;
        multiply_weight(m, c.weight_id, 'N', 'T', m->T, c.count, z.D, 1, n, z.D, a->qkv.w + c.first * z.D,
                        z.D, 0, out, z.wide);
        if (a->qkv_bias.w) m->ops->add_columns(m->T, c.count, 1, a->qkv_bias.w + c.first, 0, out, z.wide);
    }
    if (x->inlet) enter_places(m, x, x->inlet->forward, a->qkv_out, n, NULL);
    if (s->norm) head_norm_forward(m, &a->norm, &(struct head_rows){a->qkv_out, z.H, z.K, z.hd}, s->norm);
    rotate(m, s, position, 1, a->qkv_out);
}

/* The bias is a term of one tensor rank. */
static void project_out(struct model *m, const struct mixing *x, real *out) {
    const struct attention *a = x->own;
    struct shape z = shape_of(m);
    linear_terms(m, &(struct terms){.weight_id = x->weight + WEIGHT_O,
                                    .transposed = 'T',
                                    .k = z.H * z.hd,
                                    .a = a->out,
                                    .lda = z.H * z.hd,
                                    .w = a->o.w,
                                    .ldw = z.H * z.hd,
                                    .bias = a->o_bias.w,
                                    .out = out});
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
    const struct common *s = x->common;
    struct shape z = shape_of(m);
    struct mask mask;
    project(m, x, n, 0);
    if (context_cuts(m))
        context_forward(m, &s->context, &z.heads, a->qkv_out, a->out, a->lse);
    else
        m->ops->attention(m->B, m->S, z.H, z.K, z.hd, mask_of(m, x, &mask), m->start, a->qkv_out, a->out,
                          a->lse);
}

static void forward(struct model *m, const struct mixing *x, const real *n, real *out) {
    again(m, x, n);
    project_out(m, x, out);
}

/* From s->dqkv of columns that n was projected to, beside what else is in dn if `more` is; `last` of them: dn
 * is then this rank's terms of a sum. */
static void columns_backward(struct model *m, const struct mixing *x, struct columns c, const real *n,
                             real *dn, bool more, bool last) {
    const struct attention *a = x->own;
    const struct common *s = x->common;
    struct shape z = shape_of(m);
    const struct terms terms = {.weight_id = c.weight_id,
                                .transposed = 'N',
                                .k = c.count,
                                .a = s->dqkv + c.first,
                                .lda = z.wide,
                                .w = a->qkv.w + c.first * z.D,
                                .ldw = z.D,
                                .beta = more,
                                .out = dn};
    if (last)
        linear_terms(m, &terms);
    else
        multiply_weight(m, c.weight_id, 'N', 'N', m->T, z.D, c.count, 1, terms.a, z.wide, terms.w, z.D, more,
                        dn, z.D);
    weight_gradient(m, c.weight_id, c.count, z.D, m->T, 1, terms.a, z.wide, n, z.D, a->qkv.g + c.first * z.D,
                    z.D);
}

static void backward(struct model *m, const struct mixing *x, const real *dout, const real *n, real *dn) {
    const struct ops *ops = m->ops;
    const struct attention *a = x->own;
    const struct common *s = x->common;
    struct shape z = shape_of(m);
    long T = m->T, D = z.D, own = z.H * z.hd, wide = z.wide;
    int o = x->weight + WEIGHT_O;
    real *da = s->dout ? s->dout : dn; /* gradient of a->out; scratch then, until dn is written */
    ops->linear(o, 'N', 'N', T, own, D, 1, dout, D, a->o.w, own, 0, da, own);
    weight_gradient(m, o, D, own, T, 1, dout, D, a->out, own, a->o.g, own);
    if (a->o_bias.g) /* every rank has all of dout, but adds up its own rows */
        ops->add_column_sums(m->rows, D, dout + m->row0 * D, D, a->o_bias.g);
    struct mask mask;
    if (context_cuts(m))
        context_backward(m, &s->context, &z.heads, a->qkv_out, a->out, a->lse, da, s->dqkv, s->work);
    else
        ops->attention_back(m->B, m->S, z.H, z.K, z.hd, mask_of(m, x, &mask), m->start, a->qkv_out, a->out,
                            a->lse, da, s->dqkv, s->work);
    rotate(m, s, 0, -1, s->dqkv);
    if (s->norm) head_norm_backward(m, &a->norm, &(struct head_rows){s->dqkv, z.H, z.K, z.hd}, s->norm, da);
    if (x->inlet) {
        ops->zero(T * D, dn);
        enter_places(m, x, x->inlet->backward, s->dqkv, n, dn);
    }
    for (struct columns c = next_columns(m, x, 0), next; c.count; c = next) {
        next = next_columns(m, x, c.first + c.count);
        columns_backward(m, x, c, n, dn, x->inlet, !next.count);
    }
    if (a->qkv_bias.g) ops->add_column_sums(T, wide, s->dqkv, wide, a->qkv_bias.g);
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

static void rewind_cache(const struct mixing *x, long length) {
    struct cache *cache = x->decode;
    if (cache->length > length) cache->length = length;
}

/* Key and value of the pass's token t join the cache. */
static void remember(struct model *m, const struct mixing *x, long t) {
    const struct attention *a = x->own;
    struct cache *cache = x->decode;
    struct shape z = shape_of(m);
    long one = z.K * z.hd;
    const real *key = a->qkv_out + t * z.wide + z.H * z.hd;
    m->ops->copy(one, key, cache->keys + cache->length * one);
    m->ops->copy(one, key + one, cache->values + cache->length * one);
    cache->length++;
}

/* As `project`, but without queries, of which norms and what rules add are not looked at. */
static void pass_by(struct model *m, const struct mixing *x, const real *n) {
    const struct attention *a = x->own;
    const struct common *s = x->common;
    const struct cache *cache = x->decode;
    struct shape z = shape_of(m);
    long q = z.H * z.hd, kv = 2 * z.K * z.hd;
    m->ops->gemm('N', 'T', 1, kv, z.D, 1, n, z.D, a->qkv.w + q * z.D, z.D, 0, a->qkv_out + q, z.wide);
    if (a->qkv_bias.w) m->ops->add_columns(1, kv, 1, a->qkv_bias.w + q, 0, a->qkv_out + q, z.wide);
    if (s->norm) head_norm_forward(m, &a->norm, &(struct head_rows){a->qkv_out, z.H, z.K, z.hd}, s->norm);
    m->ops->rope(1, 1, cache->length, NULL, z.K, z.hd, s->cosine, s->sine, 1, a->qkv_out + q, z.wide);
    remember(m, x, 0);
}

/* And each token's query reads all that there are up to its own: no other sum than of tokens one by one. */
static void step(struct model *m, const struct mixing *x, const real *n, real *out) {
    const struct attention *a = x->own;
    const struct cache *cache = x->decode;
    struct shape z = shape_of(m);
    project(m, x, n, cache->length);
    for (long t = 0; t < m->T; t++) {
        remember(m, x, t);
        m->ops->attention_decode(cache->length, z.H, z.K, z.hd, a->qkv_out + t * z.wide, cache->keys,
                                 cache->values, a->out + t * z.H * z.hd);
    }
    project_out(m, x, out);
}

const struct mixer mixer_attention = {
    .name = "attention",
    .own_bytes = sizeof(struct attention),
    .common_bytes = sizeof(struct common),
    .decode_bytes = sizeof(struct cache),
    .documents = true,
    .pieces = true,
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
    .rewind = rewind_cache,
    .step = step,
    .pass_by = pass_by,
};
