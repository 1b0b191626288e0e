/* Private to model/mixer/: attention of sequences that are cut over context ranks (dist/layout/pieces.h), one
 * sequence after the other, by one of the exchanges of a table (exchange.c). c ranks; P is a piece's length,
 * of which a rank has two of each sequence, S = 2c·P a sequence's. */
#ifndef GDN_MIXER_CONTEXT_H
#define GDN_MIXER_CONTEXT_H

#include "model/base/base.h"

/* Scratch, of one sequence: which buffer is which, the exchange's file says. */
enum { CONTEXT_BUFFERS = 8 };
struct context {
    real *at[CONTEXT_BUFFERS];
};

/* This rank's heads. */
struct context_heads {
    long H, K, hd, wide; /* wide: a row of q, k and v */
};

/* What of a forward pass a backward pass has of this rank's rows of a sequence, and the gradient of o. */
struct context_saved {
    const real *qkv, *o, *dout; /* [2P, (H+2K)·hd], [2P, H·hd] each */
    const real *lse;            /* [2P·H] in an order that the exchange alone knows */
};

/* Of a whole sequence, what its queries see: keys from start [S] on (NULL: from 0 on), but for what is dropped, where
 * `drops`, by a mask whose rows and columns are positions, and whose heads begin with this rank's. */
struct context_sequence {
    const int32_t *start;
    bool drops;
    struct mask mask;
};
static inline const struct mask *context_mask(const struct context_sequence *sequence) {
    return sequence->drops ? &sequence->mask : NULL;
}

/* `start` of its queries from a position on. */
static inline const int32_t *context_start(const struct context_sequence *sequence, long position) {
    return sequence->start ? sequence->start + position : NULL;
}

/* A way. All is collective over the context axis. */
struct exchange {
    const char *name;
    bool to_next; /* hands to the next rank alone, else to all */
    /* What does not go together with so many ranks; NULL: all does. */
    const struct conflict *(*conflict)(const struct model_config *config, int tensor, int context);
    void (*lay_out)(struct model *m, struct context *x, const struct context_heads *z);
    /* As the operations attention and attention_back, of this rank's rows of one sequence: all of o and lse,
     * of dqkv. `work` [2P·H] is scratch. */
    void (*forward)(struct model *m, const struct context *x, const struct context_heads *z,
                    const struct context_sequence *sequence, const real *qkv, real *o, real *lse);
    void (*backward)(struct model *m, const struct context *x, const struct context_heads *z,
                     const struct context_sequence *sequence, const struct context_saved *saved, real *dqkv, real *work);
};

/* The rows. */
extern const struct exchange exchange_gather; /* context_gather.c */
extern const struct exchange exchange_ring;   /* context_ring.c */
extern const struct exchange exchange_heads;  /* context_heads.c */

/* Are there several context ranks? */
static inline bool context_cuts(const struct model *m) {
    return m->context->size > 1;
}

/* exchange.c: by the model's exchange; of all sequences, shapes as in attention.c, rows being pieces; the mask as of the
 * operation attention on whole ones. */
void context_lay_out(struct model *m, struct context *x, const struct context_heads *z);
void context_forward(struct model *m, const struct context *x, const struct context_heads *z,
                     const struct mask *mask, const real *qkv, real *o, real *lse);
void context_backward(struct model *m, const struct context *x, const struct context_heads *z,
                      const struct mask *mask, const real *qkv, const real *o, const real *lse, const real *dout, real *dqkv,
                      real *work);

/* context.c: which piece of its sequence a row is. What is known of sequence s of a pass, of which the mask, or NULL,
 * is the first's. */
int context_piece(const struct model *m, long row);
struct context_sequence context_sequence_of(const struct model *m, const struct mask *mask, long s);
/* Positions of queries and keys of qkv [T, (H+2K)·hd], turned by `direction`; cosine and sine [S, hd/2]. */
void context_rotate(struct model *m, const struct context_heads *z, const real *cosine, const real *sine,
                    int direction, real *qkv);
/* Between the order of ranks, each of which has its rows [2P, width] at by_rank + rank·each, and that of
 * positions, in_order [S, width]. */
enum context_way { TO_POSITIONS, TO_RANKS };
void context_reorder(struct model *m, enum context_way way, long width, long each, real *by_rank,
                     real *in_order);

#endif
