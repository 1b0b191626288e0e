/* Attention's linear maps: from a norm's output to queries, keys and values of this rank's heads, with what
 * rules between layers bring to them, heads' norms and rotation; from attention's output to the mixer's; and
 * back. */
#include "model/base/terms.h"
#include "model/mixer/attention.h"

struct attention_shape attention_shape_of(const struct model *m) {
    const struct model_config *c = &m->config;
    long hd = head_width(c), H = c->num_heads / m->layout.size[AXIS_TENSOR],
         K = c->num_kv_heads / m->layout.size[AXIS_TENSOR];
    const struct context_heads heads = {H, K, hd, (H + 2 * K) * hd};
    return (struct attention_shape){
        .D = c->hidden_size, .H = H, .K = K, .hd = hd, .wide = heads.wide, .heads = heads};
}

/* Is the place projected from n, by the mixer itself? */
static bool projects(const struct model *m, const struct mixing *x, enum rule_place place) {
    return !x->inlet || !x->inlet->instead(m, x->layer, place);
}

typedef void enter(struct model *m, int layer, enum rule_place place, const struct heads *heads);

/* What enters the queries, keys and values of qkv [T, (H+2K)·hd], or takes its part of their gradients. */
static void enter_places(struct model *m, const struct mixing *x, enter *call, real *qkv, const real *n,
                         real *dn) {
    struct attention_shape z = attention_shape_of(m);
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
    struct attention_shape z = attention_shape_of(m);
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
static void rotate(struct model *m, const struct attention_common *s, long position, int direction,
                   real *qkv) {
    const struct attention_shape z = attention_shape_of(m);
    if (context_cuts(m))
        context_rotate(m, &z.heads, s->cosine, s->sine, direction, qkv);
    else
        m->ops->rope(m->T, m->S, position, m->start, z.H + z.K, z.hd, s->cosine, s->sine, direction, qkv,
                     z.wide);
}

void attention_project(struct model *m, const struct mixing *x, const real *n, long position) {
    const struct attention *a = x->own;
    const struct attention_common *s = x->common;
    struct attention_shape z = attention_shape_of(m);
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
void attention_project_out(struct model *m, const struct mixing *x, real *out) {
    const struct attention *a = x->own;
    struct attention_shape z = attention_shape_of(m);
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

/* From s->dqkv of columns that n was projected to, beside what else is in dn if `more` is; `last` of them: dn
 * is then this rank's terms of a sum. */
static void columns_backward(struct model *m, const struct mixing *x, struct columns c, const real *n,
                             real *dn, bool more, bool last) {
    const struct attention *a = x->own;
    const struct attention_common *s = x->common;
    struct attention_shape z = attention_shape_of(m);
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

void attention_project_back(struct model *m, const struct mixing *x, const real *n, real *dn, real *work) {
    const struct ops *ops = m->ops;
    const struct attention *a = x->own;
    const struct attention_common *s = x->common;
    struct attention_shape z = attention_shape_of(m);
    long T = m->T, D = z.D, wide = z.wide;
    rotate(m, s, 0, -1, s->dqkv);
    if (s->norm) head_norm_backward(m, &a->norm, &(struct head_rows){s->dqkv, z.H, z.K, z.hd}, s->norm, work);
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
