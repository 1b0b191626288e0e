/* Private to model/: products of which each tensor rank has terms of the rows' sums. Where mesh.tensor_pieces
 * says so a product is computed in pieces of rows, and the sum of each is under way while the next is
 * multiplied, and what comes before block_sum of these rows (layer/stream.h), which ends it. */
#ifndef GDN_TERMS_H
#define GDN_TERMS_H

#include "model/base/base.h"

/* out [T, D] = a [T, k] · w + beta · out: w is [k, D], or [D, k] and `transposed` 'T'. */
struct terms {
    int weight_id; /* kernels/ops.h, linear; NO_WEIGHT_ID: gemm */
    char transposed;
    long k;
    const real *a, *w;
    long lda, ldw;    /* row distances */
    const real *bias; /* [D], added to the first rank's terms; NULL: none */
    real beta;
    real *out;
};

void linear_terms(struct model *m, const struct terms *terms);
/* If the sum of x has begun: ends it, after which x [T, D] is the sum, and returns true. */
bool end_terms(struct model *m, const real *x);

#endif
