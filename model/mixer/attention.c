/* Softmax attention with rotary positions, the mixer of a transformer: heads divided over the tensor axis. In
 * shapes H and K are this rank's heads and key/value heads of width hd. Linear maps have a file of their own
 * (attention_project.c), and so has generation (attention_decode.c). */
#include "kernels/base/status.h"
#include "model/base/dropout.h"
#include "model/mixer/attention.h"
#include "model/mixer/rotary.h"

#include <math.h>
#include <stdlib.h>

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

static int validate_device(const struct model_config *c, const char *device) {
    int width = head_width(c);
    if (width <= OPS_WIDEST_HEAD) return 0;
    if (c->head_dim)
        return gdn_fail(GDN_INPUT, "model.head_dim: %d; on device %s heads are at most %d wide", c->head_dim,
                        device, OPS_WIDEST_HEAD);
    return gdn_fail(
        GDN_INPUT,
        "model.hidden_size: %d and model.num_heads: %d make heads %d wide; on device %s they are at most %d",
        c->hidden_size, c->num_heads, width, device, OPS_WIDEST_HEAD);
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
    struct attention_shape z = attention_shape_of(m);
    a->policy = x->policy;
    SAVE_BF16(m, a, shared, qkv_out, T * z.wide, POLICY_FULL);
    SAVE_BF16(m, a, shared, out, T * z.H * z.hd, POLICY_FULL);
    SAVE(m, a, shared, lse, T * z.H, POLICY_FULL);
    if (m->config.qk_norm == QK_NORM_NONE) return;
    SAVE_BF16(m, a, shared, norm.x, T * (z.H + z.K) * z.hd, POLICY_FULL);
    SAVE(m, a, shared, norm.rstd, T * (z.H + z.K), POLICY_FULL);
}

static void lay_out_scratch(struct model *m, void *common, long T, long positions) {
    struct attention_common *s = common;
    struct attention_shape z = attention_shape_of(m);
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
    const struct attention_common *s = common;
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

/* What is dropped of this rank's heads; NULL: nothing. */
static const struct mask *mask_of(const struct model *m, const struct mixing *x, struct mask *mask) {
    const double rate = m->config.dropout.attention;
    if (!drops(m, rate)) return NULL;
    *mask = dropout_mask(m, DROP_ATTENTION, x->layer, 0, rate);
    mask->head = (uint64_t)(m->tensor->index * attention_shape_of(m).H);
    return mask;
}

static void again(struct model *m, const struct mixing *x, const real *n) {
    const struct attention *a = x->own;
    const struct attention_common *s = x->common;
    struct attention_shape z = attention_shape_of(m);
    struct mask mask;
    attention_project(m, x, n, 0);
    if (context_cuts(m))
        context_forward(m, &s->context, &z.heads, mask_of(m, x, &mask), a->qkv_out, a->out, a->lse);
    else
        m->ops->attention(m->B, m->S, z.H, z.K, z.hd, mask_of(m, x, &mask), m->start, a->qkv_out, a->out,
                          a->lse);
}

static void forward(struct model *m, const struct mixing *x, const real *n, real *out) {
    again(m, x, n);
    attention_project_out(m, x, out);
}

static void backward(struct model *m, const struct mixing *x, const real *dout, const real *n, real *dn) {
    const struct ops *ops = m->ops;
    const struct attention *a = x->own;
    const struct attention_common *s = x->common;
    struct attention_shape z = attention_shape_of(m);
    long T = m->T, D = z.D, own = z.H * z.hd;
    int o = x->weight + WEIGHT_O;
    real *da = s->dout ? s->dout : dn; /* gradient of a->out; scratch then, until dn is written */
    ops->linear(o, 'N', 'N', T, own, D, 1, dout, D, a->o.w, own, 0, da, own);
    weight_gradient(m, o, D, own, T, 1, dout, D, a->out, own, a->o.g, own);
    if (a->o_bias.g) /* every rank has all of dout, but adds up its own rows */
        ops->add_column_sums(m->rows, D, dout + m->row0 * D, D, a->o_bias.g);
    struct mask mask;
    if (context_cuts(m))
        context_backward(m, &s->context, &z.heads, mask_of(m, x, &mask), a->qkv_out, a->out, a->lse, da, s->dqkv,
                         s->work);
    else
        ops->attention_back(m->B, m->S, z.H, z.K, z.hd, mask_of(m, x, &mask), m->start, a->qkv_out, a->out,
                            a->lse, da, s->dqkv, s->work);
    attention_project_back(m, x, n, dn, da);
}

const struct mixer mixer_attention = {
    .name = "attention",
    .own_bytes = sizeof(struct attention),
    .common_bytes = sizeof(struct attention_common),
    .decode_bytes = sizeof(struct attention_cache),
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
    .lay_out_decode = attention_lay_out_decode,
    .reset = attention_reset,
    .rewind = attention_rewind,
    .step = attention_step,
    .pass_by = attention_pass_by,
};
