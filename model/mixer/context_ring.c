/* ring: keys and values of each rank travel round the ranks, the next block while attention on this one is
 * computed, whose output joins that of the blocks before by their log-sum-exps (Liu et al., "Ring Attention
 * with Blockwise Transformers", 2023). In the backward pass they go round again, and a step behind them the
 * sums of what each rank's queries give them, from their owner on, until these have come back to it. Each
 * step has as many pairs of a query and a key on all ranks. */
#include "dist/comm/axis_ring.h"
#include "dist/layout/pieces.h"
#include "model/mixer/context.h"

enum {
    BLOCK,    /* [2P, 2K·hd] keys and values of the block at hand */
    NEXT,     /* and of that which comes */
    OTHER,    /* [P, H·hd] a row's attention on a piece of it, */
    LSE,      /* [H, P] and its log-sum-exp */
    GIVEN,    /* [2P, 2K·hd], in training: what this rank's queries give the block; */
    LEAVING,  /* the sum that goes on, of the block before; */
    ARRIVING, /* and that which comes, of the block at hand */
};

/* Elements of a block. */
static long block_of(const struct context_heads *z, long P) {
    return 2 * P * 2 * z->K * z->hd;
}

static void lay_out(struct model *m, struct context *x, const struct context_heads *z) {
    const long block = block_of(z, m->length);
    for (int i = BLOCK; i <= NEXT; i++) x->at[i] = take(&m->scratch, block);
    x->at[OTHER] = take(&m->scratch, m->length * z->H * z->hd);
    x->at[LSE] = take(&m->scratch, m->length * z->H);
    for (int i = GIVEN; i <= ARRIVING && m->training; i++) x->at[i] = take(&m->scratch, block);
}

static void swap(real **a, real **b) {
    real *c = *a;
    *a = *b, *b = c;
}

/* Whose block a rank has in a step. */
static int owner(const struct model *m, int step) {
    return (m->context->index - step + m->context->size) % m->context->size;
}

/* Which piece the block's half has in a step. */
static int piece_of(const struct model *m, int step, long half) {
    return piece_of_row(m->context->size, owner(m, step), half);
}

/* A rank's own keys and values begin. */
static void take_own(struct model *m, const struct context_heads *z, const real *qkv, real *block) {
    const long width = 2 * z->K * z->hd;
    m->ops->copy_columns(2 * m->S, width, qkv + z->H * z->hd, z->wide, block, width);
}

/* A row's queries on those of the block's pieces that they may see. In the first step its own comes first. */
static void attend(struct model *m, const struct context *x, const struct context_heads *z,
                   const struct context_sequence *sequence, int step, const real *block, const real *qkv,
                   real *o, real *lse) {
    const long P = m->S, width = 2 * z->K * z->hd;
    for (long row = 0; row < 2; row++) {
        const long t = row * P, own = context_piece(m, row);
        real *all = o + t * z->H * z->hd, *all_lse = lse + t * z->H;
        for (long half = 1; half >= 0; half--) {
            const long piece = piece_of(m, step, half);
            const bool joins = step || piece < own;
            if (piece > own) continue;
            m->ops->attention_piece(P, P, own * P, piece * P, z->H, z->K, z->hd, context_mask(sequence),
                                    context_start(sequence, own * P), qkv + t * z->wide, z->wide,
                                    block + half * P * width, width, joins ? x->at[OTHER] : all,
                                    joins ? x->at[LSE] : all_lse);
            if (joins) m->ops->attention_join(P, z->H, z->hd, x->at[OTHER], x->at[LSE], all, all_lse);
        }
    }
}

static void forward(struct model *m, const struct context *x, const struct context_heads *z,
                    const struct context_sequence *sequence, const real *qkv, real *o, real *lse) {
    const int c = m->context->size;
    real *block = x->at[BLOCK], *next = x->at[NEXT];
    take_own(m, z, qkv, block);
    for (int step = 0; step < c; step++) {
        if (step + 1 < c) axis_ring_begin(m->context, block, next, block_of(z, m->S));
        attend(m, x, z, sequence, step, block, qkv, o, lse);
        axis_ring_end(m->context);
        swap(&block, &next);
    }
}

static void attend_back(struct model *m, const struct context_heads *z,
                        const struct context_sequence *sequence, int step, const real *block,
                        const struct context_saved *saved, real *dqkv, real *given, real *work) {
    const long P = m->S, width = 2 * z->K * z->hd;
    for (long row = 0; row < 2; row++) {
        const long t = row * P, at = t * z->H * z->hd, own = context_piece(m, row);
        for (long half = 1; half >= 0; half--) {
            const long piece = piece_of(m, step, half), keys = half * P * width;
            if (piece > own) continue;
            m->ops->attention_piece_back(P, P, own * P, piece * P, z->H, z->K, z->hd, context_mask(sequence),
                                         context_start(sequence, own * P), saved->qkv + t * z->wide, z->wide,
                                         block + keys, width, saved->o + at, saved->lse + t * z->H,
                                         saved->dout + at, dqkv + t * z->wide, given + keys, work);
        }
    }
}

static void backward(struct model *m, const struct context *x, const struct context_heads *z,
                     const struct context_sequence *sequence, const struct context_saved *saved, real *dqkv, real *work) {
    const int c = m->context->size;
    const long width = 2 * z->K * z->hd, count = block_of(z, m->S);
    real *block = x->at[BLOCK], *next = x->at[NEXT];
    real *given = x->at[GIVEN], *leaving = x->at[LEAVING], *arriving = x->at[ARRIVING];
    take_own(m, z, saved->qkv, block);
    m->ops->zero(2 * m->S * z->wide, dqkv);
    for (int step = 0; step < c; step++) {
        if (step + 1 < c) axis_ring_begin(m->context, block, next, count);
        if (step > 0) axis_ring_begin(m->context, leaving, arriving, count);
        m->ops->zero(count, given);
        attend_back(m, z, sequence, step, block, saved, dqkv, given, work);
        axis_ring_end(m->context);
        swap(&block, &next);
        if (step > 0) m->ops->add(count, given, arriving);
        swap(step > 0 ? &arriving : &given, &leaving);
    }
    axis_ring_begin(m->context, leaving, arriving, count);
    axis_ring_end(m->context);
    m->ops->copy_columns(2 * m->S, width, arriving, width, dqkv + z->H * z->hd, z->wide);
}

const struct exchange exchange_ring = {.name = "ring",
                                       .to_next = true,
                                       .lay_out = lay_out,
                                       .forward = forward,
                                       .backward = backward};
