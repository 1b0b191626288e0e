/* Private to model/: products whose results are gradients of weights, dW += dYᵀ X. A backward pass does not
 * need them to go on, so that they may wait (schedule zero_bubble; Qi et al. 2024, who call them W): then
 * what they multiply is copied to the pass's weight set, and model_stage_weights computes them later, with
 * the same calls in the same order, so that not a bit differs as long as all products of a tensor go this
 * way.
 *
 * At once remain sums that are no products (norms, biases, small vectors), the head's and the embedding's,
 * those of tensors that several layers add to (rules/first_values.c) or that the sparsity term adds to as
 * well (delta/bottleneck.c), and of projections between stages (delta/narrow.c). */
#ifndef GDN_MODEL_WEIGHT_GRADIENTS_H
#define GDN_MODEL_WEIGHT_GRADIENTS_H

#include "model/base/base.h"

/* One that waits: c [m, n] += alpha · aᵀ b, with a [k, m] and b [k, n] in the set's store, packed. */
struct weight_product {
    int layer, weight_id; /* weight_id: of `linear`; NO_WEIGHT_ID: gemm */
    long m, n, k;
    real alpha;
    const real *a, *b;
    real *c;
    long ldc;
};
enum { WEIGHT_ALIGNED = 4 }; /* elements that an operand's room is a multiple of */

/* Those of one micro-batch. */
struct weight_set {
    int count, next;                /* products; the first that is not computed yet */
    long used;                      /* elements of the store */
    real *store;                    /* [elements] */
    struct weight_product *product; /* [products] */
};

/* An operand that several products of a layer have, which keep one copy of it. */
struct weight_operand {
    const real *x, *copy;
    long k, n;
};
enum {
    WEIGHT_OPERANDS = 2 * OPS_CONNECTIONS
}; /* of a layer, at most; of others each product has a copy of its own */

struct weight_gradients {
    int sets, from;                /* products of layers from `from` on wait */
    struct model_weight_size size; /* of a set */
    struct weight_set *set;        /* [sets] */
    struct weight_set *open;       /* where those of the pass in progress go; NULL: they are computed */
    int layer;                     /* that the pass is at, and its operands so far */
    int operands;
    struct weight_operand operand[WEIGHT_OPERANDS];
    struct model_weight_size
        *count; /* [num_layers] products are counted here, and computed; NULL: they are not */
};

/* A backward pass begins that fills the set: empty from then on. */
void begin_weight_set(struct model *m, struct weight_set *set);
/* The pass comes to a layer of its chunk, whose products go to the set, NULL: are computed. */
void defer_weight_gradients(struct model *m, struct weight_set *set, int layer);
/* Computes those of the set that come next, of layers down to `end`. */
void compute_weight_set(struct model *m, struct weight_set *set, int end);

#endif
