/* Private to model/: what all its folders share. Shapes, here and in their headers: T = B·S tokens of a
 * micro-batch, D hidden size, W the stream's width (params/stream.h), H and K heads and key/value
 * heads of width hd, F MLP width, V vocabulary, these four this rank's part. R own rows of the stream: all T
 * but with sequence_parallel over several ranks, where a buffer of R rows begins with the rank's first.
 * "Saved" buffers live from the forward to the backward pass; scratch buffers hold nothing between calls. */
#ifndef GDN_MODEL_BASE_H
#define GDN_MODEL_BASE_H

#include "dist/comm/axis.h"
#include "dist/layout/layout.h"
#include "dist/layout/pieces.h"
#include "dist/layout/table.h"
#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "model/params/config.h"
#include "model/params/edges.h"

/* A weight and its gradient, or the first of several that are neighbours in memory. */
struct tensor {
    real *w, *g;
};

/* A saved buffer of a layer, or of a rule in it, whose numbers are kept in bf16 from its forward to its
 * backward pass (SAVE_AS). */
struct stored {
    real *at;       /* [count] where the layer's passes have them, shared by all layers */
    uint16_t *kept; /* [count]; NULL: computed again */
    long count;
};
enum { STORED = 12 }; /* of a layer, or of a rule in it, at most */
struct stored_list {
    int count;
    struct stored buffer[STORED];
};

/* Beyond enum recompute_policy: nothing is kept for a backward pass, since none follows. */
enum { POLICY_NO_BACKWARD = POLICY_FULL + 1 };

/* What one micro-batch in flight keeps of a chunk of layers. */
struct activation_set {
    struct layer *layer;                /* [num_layers], those of the chunk (layer/layer.h) */
    struct rule_layer *rule[MAX_RULES]; /* each [num_layers]: what enters them (rule/rule.h) */
    real *x0;         /* [T, D] embedding output, on the first stage where it is whole; else NULL */
    real **rstd;      /* [num_layers + 1], entry 1 + node: [R] its inverse rms; NULL where none is needed */
    bool *rstd_known; /* [num_layers + 1] filled in this micro-batch */
    struct kept_output *kept; /* [num_layers + 1], entry 1 + node (pass/private.h) */
    real **rows; /* [num_layers + 1], entry 1 + node: [R, W]; NULL where the output is kept whole */
};

struct model {
    struct model_config config;
    const struct table *table;
    const struct state *state;
    const struct ops *ops;
    struct layout layout;
    long stream;                /* W, stream_width of the configuration */
    struct axis *tensor, alone; /* the tensor axis; points to `alone`, of one rank, for a whole model */
    struct axis *context, uncut; /* the context axis likewise: rows are pieces of sequences (pieces.h) */
    int context_exchange;        /* how its ranks bring them together (mixer/exchange.h) */
    struct edges edges;
    struct arena saved, nodes, scratch; /* nodes: their outputs, as far as saved */
    struct arena staging;   /* host memory, where the device is not the host: what crosses between the two */
    bool training, planned; /* planned: addresses without memory behind them */
    long batch, length;     /* capacity of a micro-batch */
    bool documents;         /* do not see each other: `start` below is there */
    bool padding;           /* there may be some: `counts` below is there */
    bool rows_divided;      /* sequence_parallel over more than one rank */
    long rows_max;          /* R for passes of full capacity, the same on all ranks */
    long sums, context_sums; /* most elements that are summed over the tensor axis, the context axis in one call */
    bool bf16_activations;  /* what SAVE_BF16 saves is kept in bf16 */
    bool bf16_stream;       /* and what is saved of the residual stream, whose numbers are rounded to that */
    struct stored_list *stored; /* of the layer or rule that is being laid out; NULL: of what layers share */
    double compress;            /* part of the full rank that sources keep, 0: they are not compressed */
    int status;                 /* of the first pass that failed */

    /* What each folder has of its own: tensors, scratch, accounts. */
    struct mixing *mixers;     /* mixer/mixer.h: of each row of the table what layers share */
    struct trunk *trunk;       /* layer/layer.h */
    struct rules *rules;       /* rule/rule.h: those between layers */
    struct delta_state *delta; /* delta/connections.h: of the delta rule, where the model has it */
    struct pass_state *passes; /* pass/private.h */
    struct weight_gradients *weight_gradients; /* base/weight_gradients.h */

    /* The pass in progress. */
    const struct pass *pass;
    long B, S, T;
    const int32_t *start; /* [T], with several context ranks [T·c] of whole sequences: where in its sequence each token's
                             document starts; NULL: documents see each other */
    const real *counts; /* [T] 1, of padding 0; NULL: there is none */
    long row0, rows;    /* own rows of the stream: all of them but with sequence_parallel */
    bool gradients;     /* a backward pass follows, or is this */
    struct span span;   /* of its chunk */
    struct activation_set *activation_set;
    struct layer *layer; /* the activation set's */
    real *g;             /* [T, W] gradient of the stream that the backward pass walks down: pass->gradient */
    bool g_full;         /* all rows of g are valid */
    const real *begun;   /* the terms whose sum over tensor ranks is under way (terms.h); NULL: none */
};

/* model.c: the tensor of a name, or the first of a stack; NULL pointers where this rank has none. */
struct tensor find_tensor(const struct model *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Records the first failure of a pass (model_status). */
void pass_failed(struct model *m, int status);

enum { NO_WEIGHT_ID = -1 };
/* A product with a weight of the trunk, or the gradient of one: of a numbered weight `linear`, else gemm. */
static inline void multiply_weight(const struct model *m, int weight_id, char ta, char tb, long rows,
                                   long columns, long k, real alpha, const real *a, long lda, const real *b,
                                   long ldb, real beta, real *c, long ldc) {
    if (weight_id == NO_WEIGHT_ID)
        m->ops->gemm(ta, tb, rows, columns, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        m->ops->linear(weight_id, ta, tb, rows, columns, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* weight_gradients.c: adds alpha · aᵀ b to the gradient c [rows, columns] of weights that this rank holds, a
 * [tokens, rows] with row distance lda, b [tokens, columns] with ldb: of a numbered weight of the trunk by
 * `linear`, else by gemm; at once, or where the pass defers it by model_stage_weights. All products of a
 * tensor go this way, or none. */
void weight_gradient(struct model *m, int weight_id, long rows, long columns, long tokens, real alpha,
                     const real *a, long lda, const real *b, long ldb, real *c, long ldc);
/* The same by gemm with a b that stays as it is until the layer's rules and blocks are done, and that several
 * of its products have: where they wait they share a copy. */
void weight_gradient_again(struct model *m, long rows, long columns, long tokens, real alpha, const real *a,
                           long lda, const real *b, long ldb, real *c, long ldc);

/* edges.c: does an edge lead from the node into one of these layers? */
bool feeds(const struct model *m, int node, struct span span);
/* Does an active edge start from the node? */
bool node_is_read(const struct model *m, int node);
/* The highest of the span's layers that reads the node; where none does, the one above it. */
int node_top(const struct model *m, struct span span, int node);
/* How many edges into a layer are active in the pass. */
int active_into(const struct model *m, int layer);

/* The next `count` elements of an arena. */
static inline real *take(struct arena *arena, long count) {
    return arena_take(arena, (size_t)count * sizeof(real));
}
/* A saved buffer of a layer, of its mixer or its connections: its own, or from policy `from` on that of
 * `common`, which is shared by all that do not keep theirs and itself has those that somebody needs. */
#define SAVE(m, owner, common, member, count, from)                                                          \
    ((owner)->member = (owner)->policy < (from) ? (owner) == (common) ? NULL : take(&(m)->saved, count)      \
                       : (owner) == (common) ? take(&(m)->scratch, count)                                    \
                                                : (common)->member)

/* The same of a buffer that no other layer reads, where `bf16` kept in bf16: then layers have it in turn on
 * that of `common`. */
#define SAVE_AS(m, bf16, owner, common, member, count, from)                                                 \
    do {                                                                                                     \
        if (bf16)                                                                                            \
            (owner)->member = save_bf16(m, (common)->member, count, (owner)->policy < (from));               \
        else                                                                                                 \
            SAVE(m, owner, common, member, count, from);                                                     \
    } while (0)
#define SAVE_BF16(m, ...) SAVE_AS(m, (m)->bf16_activations, __VA_ARGS__)
/* The same, up to POLICY_FULL, of a buffer from which policy SELECTIVE computes others again, which are those
 * of the forward pass to the bit: so there it is kept as it is. */
#define SAVE_BF16_ROOT(m, owner, common, member, count)                                                      \
    do {                                                                                                     \
        if (!(m)->bf16_activations)                                                                          \
            SAVE(m, owner, common, member, count, POLICY_FULL);                                              \
        else if ((owner)->policy == POLICY_SELECTIVE && (owner) != (common))                                 \
            (owner)->member = save_bf16(m, take(&(m)->saved, count), count, false);                          \
        else                                                                                                 \
            (owner)->member = save_bf16(m, (common)->member, count, (owner)->policy == POLICY_NONE);         \
    } while (0)
/* stored.c: puts the buffer `at` on the list of what is laid out, for what layers share takes it from
 * scratch. */
real *save_bf16(struct model *m, real *at, long count, bool keep);
/* Behind a forward pass: keeps what is kept of the list. Before a backward pass: brings that back; and once
 * the rest is computed again, rounds it, as if it had been kept. */
void stored_keep(const struct model *m, const struct stored_list *list);
void stored_bring(const struct model *m, const struct stored_list *list);
void stored_round(const struct model *m, const struct stored_list *list);

/* Tokens of a whole sequence of the pass, of which rows may be pieces (dist/layout/pieces.h). */
static inline long whole_length(const struct model *m) {
    return m->S * m->context->size * pieces_each(m->context->size);
}

/* Of two sizes of a buffer. */
static inline long largest(long a, long b) {
    return a > b ? a : b;
}

#endif
