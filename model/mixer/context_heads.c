/* heads: an all-to-all makes of a rank's rows of all heads all rows of its share of the heads, attention is
 * that of whole sequences with fewer heads, and another all-to-all takes its output back (Jacobs et al.,
 * "DeepSpeed Ulysses", 2023). The backward pass does the same with gradients. */
#include "model/mixer/context.h"

/* [c, 2P, (H+2K)·hd/c] each, in training [c, 2P, (3H+2K)·hd/c]: what goes to each rank and comes from it, or
 * what this rank computes with, in order of position. */
enum { SEND, RECEIVE };

/* What of this rank's rows of a sequence travels: [2P, (H+2K)·hd] of q, k and v, or like q alone (K is 0). */
struct strip {
    const real *from; /* rows of all heads, where it comes from */
    real *to;         /* and where it goes */
    long H, K;
};

/* Columns of a row on all ranks together, and of each. */
static long columns(const struct strip *s, long hd) {
    return (s->H + 2 * s->K) * hd;
}

static long share(const struct model *m, const struct strip *s, long hd) {
    return columns(s, hd) / m->context->size;
}

static void lay_out(struct model *m, struct context *x, const struct context_heads *z) {
    const long count = 2 * m->length * (z->wide + (m->training ? 2 * z->H * z->hd : 0));
    for (int i = SEND; i <= RECEIVE; i++) x->at[i] = take(&m->scratch, count);
}

/* Between rows of all heads and `each` rank's share of them, of which the strip has [2P, share] at by_rank.
 */
enum deal { TO_SHARES, TO_ROWS };

static void deal(struct model *m, enum deal way, long hd, const struct strip *s, long each, real *by_rank) {
    const int c = m->context->size;
    const long ld = columns(s, hd), own = share(m, s, hd);
    for (int r = 0; r < c; r++) {
        long all = 0; /* columns of the queries, or keys, before these */
        for (int i = 0; i < (s->K ? 3 : 1); i++) {
            const long heads = (i ? s->K : s->H) * hd, width = heads / c, column = all + r * width;
            real *at = by_rank + r * each + all / c;
            if (way == TO_SHARES)
                m->ops->copy_columns(2 * m->S, width, s->from + column, ld, at, own);
            else
                m->ops->copy_columns(2 * m->S, width, at, own, s->to + column, ld);
            all += heads;
        }
    }
}

/* Of each strip all rows of this rank's heads, in order of position: in SEND, one behind the other. */
static void to_heads(struct model *m, const struct context *x, long hd, int strips,
                     const struct strip *strip) {
    const long c = m->context->size;
    long each = 0, at = 0;
    for (int i = 0; i < strips; i++) each += 2 * m->S * share(m, &strip[i], hd);
    for (int i = 0; i < strips; i++) {
        deal(m, TO_SHARES, hd, &strip[i], each, x->at[SEND] + at);
        at += 2 * m->S * share(m, &strip[i], hd);
    }
    axis_exchange(m->context, x->at[SEND], each, x->at[RECEIVE]);
    at = 0;
    for (int i = 0; i < strips; i++) {
        const long width = share(m, &strip[i], hd);
        context_reorder(m, TO_POSITIONS, width, each, x->at[RECEIVE] + at, x->at[SEND] + c * at);
        at += 2 * m->S * width;
    }
}

/* And the way back of what is in RECEIVE, to this rank's rows of all heads. */
static void to_rows(struct model *m, const struct context *x, long hd, const struct strip *strip) {
    const long width = share(m, strip, hd), each = 2 * m->S * width;
    context_reorder(m, TO_RANKS, width, each, x->at[SEND], x->at[RECEIVE]);
    axis_exchange(m->context, x->at[SEND], each, x->at[RECEIVE]);
    deal(m, TO_ROWS, hd, strip, each, x->at[RECEIVE]);
}

/* What is dropped of this rank's share of the heads; NULL: nothing. */
static const struct mask *mask_of(const struct model *m, const struct context_heads *z,
                                  const struct context_sequence *sequence, struct mask *mask) {
    if (!sequence->drops) return NULL;
    *mask = mask_at(&sequence->mask, m->context->index * (z->H / m->context->size), 0);
    return mask;
}

/* lse is that of all rows of this rank's share of the heads, [H/c, S]. */
static void forward(struct model *m, const struct context *x, const struct context_heads *z,
                    const struct context_sequence *sequence, const real *qkv, real *o, real *lse) {
    const long c = m->context->size;
    struct mask mask;
    to_heads(m, x, z->hd, 1, &(struct strip){.from = qkv, .H = z->H, .K = z->K});
    m->ops->attention(1, 2 * c * m->S, z->H / c, z->K / c, z->hd, mask_of(m, z, sequence, &mask),
                      sequence->start, x->at[SEND], x->at[RECEIVE], lse);
    to_rows(m, x, z->hd, &(struct strip){.to = o, .H = z->H});
}

static void backward(struct model *m, const struct context *x, const struct context_heads *z,
                     const struct context_sequence *sequence, const struct context_saved *saved, real *dqkv, real *work) {
    const long c = m->context->size, P = m->S, hd = z->hd;
    struct mask mask;
    to_heads(m, x, hd, 3,
             (struct strip[]){{.from = saved->qkv, .H = z->H, .K = z->K},
                              {.from = saved->o, .H = z->H},
                              {.from = saved->dout, .H = z->H}});
    const real *qkv = x->at[SEND], *o = qkv + 2 * P * z->wide, *dout = o + 2 * P * z->H * hd;
    m->ops->attention_back(1, 2 * c * P, z->H / c, z->K / c, hd, mask_of(m, z, sequence, &mask), sequence->start, qkv,
                           o, saved->lse, dout, x->at[RECEIVE], work);
    to_rows(m, x, hd, &(struct strip){.to = dqkv, .H = z->H, .K = z->K});
}

static const struct conflict *conflict(const struct model_config *config, int tensor, int context) {
    static const struct conflict divided = {
        "exchange heads gives each context rank as many of a tensor rank's key/value heads as the others: "
        "context must "
        "divide num_kv_heads / tensor, or another exchange is expected",
        {"mesh.context_exchange", "mesh.context", "mesh.tensor", "model.num_kv_heads"}};
    return config->num_kv_heads % ((long)tensor * context) ? &divided : NULL;
}

const struct exchange exchange_heads = {
    .name = "heads", .conflict = conflict, .lay_out = lay_out, .forward = forward, .backward = backward};
