#include "model/mixer/context.h"

#include "dist/layout/pieces.h"

static long columns(const struct context_heads *z) {
    return 2 * z->K * z->hd; /* of keys and values */
}

/* Tokens of a whole sequence. */
static long whole(const struct model *m, long P) {
    return 2 * m->context->size * P;
}

/* Of the sequence, as a piece's queries see it. */
static int piece_of(const struct model *m, long row) {
    return piece_of_row(m->context->size, m->context->index, row);
}

void context_lay_out(struct model *m, struct context *x, const struct context_heads *z) {
    if (!context_cuts(m)) return;
    const long count = whole(m, m->length) * columns(z);
    x->by_rank = take(&m->scratch, count);
    x->in_order = take(&m->scratch, count);
    if (m->training) x->gradient = take(&m->scratch, count);
    if (count > m->context_sums) m->context_sums = count;
}

void context_rotate(struct model *m, const struct context_heads *z, const real *cosine, const real *sine,
                    int direction, real *qkv) {
    const long P = m->S;
    for (long row = 0; row < m->B; row++)
        m->ops->rope(P, P, piece_of(m, row) * P, NULL, z->H + z->K, z->hd, cosine, sine, direction,
                     qkv + row * P * z->wide, z->wide);
}

/* Between the order of ranks and that of positions: x is moved to or from a place in the order of ranks. */
enum way { TO_POSITIONS, TO_RANKS };

static void reorder(struct model *m, const struct context_heads *z, enum way way, real *by_rank,
                    real *in_order) {
    const int c = m->context->size;
    const long count = m->S * columns(z);
    for (int piece = 0; piece < 2 * c; piece++) {
        real *at = by_rank + (2 * piece_rank(c, piece) + piece_row(c, piece)) * count;
        real *position = in_order + piece * count;
        m->ops->copy(count, way == TO_POSITIONS ? at : position, way == TO_POSITIONS ? position : at);
    }
}

/* Where this rank's rows are in the order of ranks. */
static real *own(const struct model *m, const struct context *x, const struct context_heads *z) {
    return x->by_rank + m->context->index * 2 * m->S * columns(z);
}

/* Keys and values of a whole sequence, given this rank's rows of it. */
static void bring(struct model *m, const struct context *x, const struct context_heads *z, const real *qkv) {
    const long P = m->S, width = columns(z);
    m->ops->copy_columns(2 * P, width, qkv + z->H * z->hd, z->wide, own(m, x, z), width);
    axis_gather_rows(m->context, x->by_rank, whole(m, P), width);
    reorder(m, z, TO_POSITIONS, x->by_rank, x->in_order);
}

void context_forward(struct model *m, const struct context *x, const struct context_heads *z, const real *qkv,
                     real *o, real *lse) {
    const long P = m->S;
    for (long row = 0; row < m->B; row++) {
        const real *q = qkv + row * P * z->wide;
        const long first = piece_of(m, row) * P;
        if (row % 2 == 0) bring(m, x, z, q);
        m->ops->attention_piece(P, first + P, first, z->H, z->K, z->hd, NULL, q, z->wide, x->in_order,
                                columns(z), o + row * P * z->H * z->hd, lse + row * P * z->H);
    }
}

void context_backward(struct model *m, const struct context *x, const struct context_heads *z,
                      const real *qkv, const real *o, const real *lse, const real *dout, real *dqkv,
                      real *work) {
    const long P = m->S, width = columns(z);
    for (long row = 0; row < m->B; row++) {
        const real *q = qkv + row * P * z->wide;
        const long first = piece_of(m, row) * P, at = row * P * z->H * z->hd;
        if (row % 2 == 0) {
            bring(m, x, z, q);
            m->ops->zero(whole(m, P) * width, x->gradient);
        }
        m->ops->attention_piece_back(P, first + P, first, z->H, z->K, z->hd, NULL, q, z->wide, x->in_order,
                                     width, o + at, lse + row * P * z->H, dout + at,
                                     dqkv + row * P * z->wide, x->gradient, work);
        if (row % 2 == 0) continue;
        reorder(m, z, TO_RANKS, x->by_rank, x->gradient);
        axis_sum_rows(m->context, x->by_rank, whole(m, P), width);
        m->ops->copy_columns(2 * P, width, own(m, x, z), width, dqkv + (row - 1) * P * z->wide + z->H * z->hd,
                             z->wide);
    }
}
