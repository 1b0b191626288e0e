/* gather: keys and values of all pieces are brought together in order of position; in the backward pass
 * again, and what each rank's queries give them goes back as sums in rank order. */
#include "model/mixer/context.h"

enum {
    BY_RANK,  /* [c, 2P, 2K·hd] keys and values, or their gradients, as ranks have them */
    IN_ORDER, /* [S, 2K·hd] keys and values in order of position */
    GRADIENT, /* [S, 2K·hd] theirs, in training */
};

static long columns(const struct context_heads *z) {
    return 2 * z->K * z->hd; /* of keys and values */
}

/* Tokens of a whole sequence. */
static long whole(const struct model *m, long P) {
    return 2 * m->context->size * P;
}

static void lay_out(struct model *m, struct context *x, const struct context_heads *z) {
    const long count = whole(m, m->length) * columns(z);
    x->at[BY_RANK] = take(&m->scratch, count);
    x->at[IN_ORDER] = take(&m->scratch, count);
    if (m->training) x->at[GRADIENT] = take(&m->scratch, count);
    if (count > m->context_sums) m->context_sums = count;
}

/* Where this rank's rows are in the order of ranks. */
static real *own(const struct model *m, const struct context *x, const struct context_heads *z) {
    return x->at[BY_RANK] + m->context->index * 2 * m->S * columns(z);
}

/* Keys and values of the whole sequence, given this rank's rows of it. */
static void bring(struct model *m, const struct context *x, const struct context_heads *z, const real *qkv) {
    const long P = m->S, width = columns(z);
    m->ops->copy_columns(2 * P, width, qkv + z->H * z->hd, z->wide, own(m, x, z), width);
    axis_gather_rows(m->context, x->at[BY_RANK], whole(m, P), width);
    context_reorder(m, TO_POSITIONS, width, 2 * P * width, x->at[BY_RANK], x->at[IN_ORDER]);
}

static void forward(struct model *m, const struct context *x, const struct context_heads *z,
                    const struct context_sequence *sequence, const real *qkv, real *o, real *lse) {
    const long P = m->S;
    bring(m, x, z, qkv);
    for (long row = 0; row < 2; row++) {
        const long first = context_piece(m, row) * P, t = row * P;
        m->ops->attention_piece(P, first + P, first, 0, z->H, z->K, z->hd, context_mask(sequence),
                                context_start(sequence, first), qkv + t * z->wide, z->wide, x->at[IN_ORDER],
                                columns(z), o + t * z->H * z->hd, lse + t * z->H);
    }
}

static void backward(struct model *m, const struct context *x, const struct context_heads *z,
                     const struct context_sequence *sequence, const struct context_saved *saved, real *dqkv, real *work) {
    const long P = m->S, width = columns(z);
    bring(m, x, z, saved->qkv);
    m->ops->zero(whole(m, P) * width, x->at[GRADIENT]);
    m->ops->zero(2 * P * z->wide, dqkv);
    for (long row = 0; row < 2; row++) {
        const long first = context_piece(m, row) * P, t = row * P, at = t * z->H * z->hd;
        m->ops->attention_piece_back(P, first + P, first, 0, z->H, z->K, z->hd, context_mask(sequence),
                                     context_start(sequence, first), saved->qkv + t * z->wide, z->wide, x->at[IN_ORDER], width, saved->o + at,
                                     saved->lse + t * z->H, saved->dout + at, dqkv + t * z->wide,
                                     x->at[GRADIENT], work);
    }
    context_reorder(m, TO_RANKS, width, 2 * P * width, x->at[BY_RANK], x->at[GRADIENT]);
    axis_sum_rows(m->context, x->at[BY_RANK], whole(m, P), width);
    m->ops->copy_columns(2 * P, width, own(m, x, z), width, dqkv + z->H * z->hd, z->wide);
}

const struct exchange exchange_gather = {
    .name = "gather", .lay_out = lay_out, .forward = forward, .backward = backward};
