/* The numbers by which a block of several residual streams reads them, writes to them and mixes them
 * (model.md, 12, hyper), of one token, on every backend. C and CUDA. */
#ifndef GDN_STREAMS_H
#define GDN_STREAMS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/base/real.h"

#ifdef __CUDACC__
#define STREAMS_FUNCTION __host__ __device__ static inline
#else
#define STREAMS_FUNCTION static inline
#endif

enum {
    STREAMS_MAX = 8,
    STREAMS_NUMBERS = STREAMS_MAX * (STREAMS_MAX + 2), /* of a token, at most */
    STREAMS_ROUNDS = 10,  /* of Sinkhorn and Knopp: each scales columns, then rows */
    STREAMS_IDENTITY = 4, /* what is added to the diagonal before exp: that of 4 streams starts as 0.95 */
};

/* What mixing's columns and rows are divided by in each round. */
struct streams_sums {
    real column[STREAMS_ROUNDS][STREAMS_MAX], row[STREAMS_ROUNDS][STREAMS_MAX];
};

STREAMS_FUNCTION real streams_exp(real x) {
    return sizeof x == sizeof(float) ? (real)expf((float)x) : (real)exp((double)x);
}

STREAMS_FUNCTION real streams_tanh(real x) {
    return sizeof x == sizeof(float) ? (real)tanhf((float)x) : (real)tanh((double)x);
}

/* Softmax of each row of a [n, n]. */
STREAMS_FUNCTION void streams_softmax(long n, real *a) {
    for (long o = 0; o < n; o++) {
        real largest = a[o * n], sum = 0;
        for (long i = 1; i < n; i++) largest = a[o * n + i] > largest ? a[o * n + i] : largest;
        for (long i = 0; i < n; i++) sum += a[o * n + i] = streams_exp(a[o * n + i] - largest);
        for (long i = 0; i < n; i++) a[o * n + i] /= sum;
    }
}

/* Divides `n` elements of a, `step` apart, by their sum, which it returns. */
STREAMS_FUNCTION real streams_divide(long n, long step, real *a) {
    real sum = 0;
    for (long i = 0; i < n; i++) sum += a[i * step];
    for (long i = 0; i < n; i++) a[i * step] /= sum;
    return sum;
}

/* Backward of it: da becomes the gradient of the elements before, which a becomes. */
STREAMS_FUNCTION void streams_divide_back(long n, long step, real sum, real *a, real *da) {
    real mean = 0;
    for (long i = 0; i < n; i++) mean += da[i * step] * a[i * step];
    for (long i = 0; i < n; i++) {
        da[i * step] = (da[i * step] - mean) / sum;
        a[i * step] *= sum;
    }
}

/* Logits a [n, n] become a matrix whose rows have sum 1, and whose columns nearly do. */
STREAMS_FUNCTION void streams_sinkhorn(long n, real *a, struct streams_sums *sums) {
    streams_softmax(n, a);
    for (int r = 0; r < STREAMS_ROUNDS; r++) {
        for (long i = 0; i < n; i++) sums->column[r][i] = streams_divide(n, n, a + i);
        for (long o = 0; o < n; o++) sums->row[r][o] = streams_divide(n, 1, a + o * n);
    }
}

/* da [n, n], of that matrix a, becomes the gradient of the logits; a is used up. */
STREAMS_FUNCTION void streams_sinkhorn_back(long n, const struct streams_sums *sums, real *a, real *da) {
    for (int r = STREAMS_ROUNDS - 1; r >= 0; r--) {
        for (long o = 0; o < n; o++) streams_divide_back(n, 1, sums->row[r][o], a + o * n, da + o * n);
        for (long i = 0; i < n; i++) streams_divide_back(n, n, sums->column[r][i], a + i, da + i);
    }
    for (long o = 0; o < n; o++) {
        real mean = 0;
        for (long i = 0; i < n; i++) mean += da[o * n + i] * a[o * n + i];
        for (long i = 0; i < n; i++) da[o * n + i] = a[o * n + i] * (da[o * n + i] - mean);
    }
}

/* Where map q of stream i goes among a token's numbers: reading, writing, mixing from i to q − 2. */
STREAMS_FUNCTION long streams_number(long n, long i, long q) {
    return q < 2 ? q * n + i : 2 * n + (q - 2) * n + i;
}

/* What numbers come from (stream_weights of kernels/delta_operations.h), of all tokens or of one: scale, u and
 * rstd are NULL where the numbers are weight's alone. */
struct streams_numbers {
    long n, first;
    bool stochastic;
    const real *weight, *scale, *u, *rstd;
};

/* Those of one of all tokens. */
STREAMS_FUNCTION struct streams_numbers streams_token(struct streams_numbers a, long t) {
    if (a.scale) {
        a.u += t * a.n * (a.n + 2);
        a.rstd += t * a.n;
    }
    return a;
}

/* c [n·(n + 2)] of a token. */
STREAMS_FUNCTION void streams_weigh_token(const struct streams_numbers *a, real *c,
                                          struct streams_sums *sums) {
    long n = a->n;
    for (long k = 0; k < n * (n + 2); k++) c[k] = a->weight[k];
    for (long i = 0; a->scale && i < n; i++)
        for (long q = 0; q < n + 2; q++)
            c[streams_number(n, i, q)] +=
                a->scale[q < 2 ? q : 2] * streams_tanh(a->rstd[i] * a->u[i * (n + 2) + q]);
    c[a->first % n] += 1;
    for (long i = 0; i < n; i++) {
        c[n + i] += 1;
        c[2 * n + i * n + i] += a->stochastic ? STREAMS_IDENTITY : 1;
    }
    if (a->stochastic) streams_sinkhorn(n, c + 2 * n, sums);
}

/* stream_weights of token t. */
STREAMS_FUNCTION void streams_weigh(const struct streams_numbers *all, long t, real *c) {
    struct streams_numbers a = streams_token(*all, t);
    struct streams_sums sums;
    streams_weigh_token(&a, c + t * a.n * (a.n + 2), &sums);
}

/* stream_weights_back of token t. */
STREAMS_FUNCTION void streams_weigh_back(const struct streams_numbers *all, long t, real *dc, real *du,
                                         real *drstd, real *dscale) {
    struct streams_numbers a = streams_token(*all, t);
    long n = a.n, first = t * n * (n + 2);
    dc += first;
    if (a.stochastic) {
        real c[STREAMS_NUMBERS];
        struct streams_sums sums;
        streams_weigh_token(&a, c, &sums);
        streams_sinkhorn_back(n, &sums, c + 2 * n, dc + 2 * n);
    }
    if (!a.scale) return;
    du += first, drstd += t * n, dscale += t * 3;
    for (int s = 0; s < 3; s++) dscale[s] = 0;
    for (long i = 0; i < n; i++) {
        real sum = 0;
        for (long q = 0; q < n + 2; q++) {
            long at = i * (n + 2) + q, s = q < 2 ? q : 2;
            real h = streams_tanh(a.rstd[i] * a.u[at]), d = dc[streams_number(n, i, q)];
            dscale[s] += d * h;
            d *= a.scale[s] * (1 - h * h);
            sum += d * a.u[at];
            du[at] = d * a.rstd[i];
        }
        drstd[i] = sum;
    }
}

/* The transpose [n, n] of what streams give each other: mixing, and with `unit` 1 what a row lacks to 1 for its
 * own. */
STREAMS_FUNCTION void streams_transpose(long n, real unit, const real *mixing, real *back) {
    for (long o = 0; o < n; o++) {
        real rest = unit;
        for (long i = 0; i < n; i++) {
            back[i * n + o] = mixing[o * n + i];
            rest -= unit * mixing[o * n + i];
        }
        back[o * n + o] += rest;
    }
}

#undef STREAMS_FUNCTION
#endif
