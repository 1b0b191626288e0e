/* Private to model/mixer/: attention of sequences that are cut over context ranks (dist/layout/pieces.h). Keys and
 * values of all pieces are brought together in order of position, one sequence after the other; in the backward
 * pass again, and what each rank's queries give them goes back as sums in rank order. Shapes as in attention.c;
 * P is a piece's length, S = 2c·P a sequence's. */
#ifndef GDN_MIXER_CONTEXT_H
#define GDN_MIXER_CONTEXT_H

#include "model/base/base.h"

/* Scratch, of one sequence. */
struct context {
    real *by_rank;  /* [c, 2P, 2K·hd] keys and values, or their gradients, as ranks have them */
    real *in_order; /* [S, 2K·hd] keys and values in order of position */
    real *gradient; /* [S, 2K·hd] theirs, in training */
};

/* This rank's heads. */
struct context_heads {
    long H, K, hd, wide; /* wide: a row of q, k and v */
};

/* Are there several context ranks? */
static inline bool context_cuts(const struct model *m) {
    return m->context->size > 1;
}

void context_lay_out(struct model *m, struct context *x, const struct context_heads *z);

/* Positions of queries and keys of qkv [T, (H+2K)·hd], turned by `direction`; cosine and sine [S, hd/2]. */
void context_rotate(struct model *m, const struct context_heads *z, const real *cosine, const real *sine,
                    int direction, real *qkv);

/* As the operations attention and attention_back, of rows that are pieces: o [T, H·hd], lse [rows, H, P]. Both are
 * collective over the context axis. */
void context_forward(struct model *m, const struct context *x, const struct context_heads *z, const real *qkv,
                     real *o, real *lse);
void context_backward(struct model *m, const struct context *x, const struct context_heads *z,
                      const real *qkv, const real *o, const real *lse, const real *dout, real *dqkv,
                      real *work);

#endif
