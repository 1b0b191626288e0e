/* CPU operations of the aggregates `attention` and `multihead`: softmax weights over the n connections into a
 * layer. Tokens are shared among the threads. */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/delta_parts.h"
#include "kernels/cpu/delta_tile.h"
#include "kernels/cpu/vector_math.h"

static inline real dot(long n, const real *x, const real *y) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Softmax, in place, over n values `stride` apart. */
static inline void softmax(long n, real *x, long stride) {
    real largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = x[i * stride] > largest ? x[i * stride] : largest;
    for (long i = 0; i < n; i++) {
        x[i * stride] = vector_exp(x[i * stride] - largest);
        sum += x[i * stride];
    }
    for (long i = 0; i < n; i++) x[i * stride] /= sum;
}

/* Backward of n scores query·key_i, whose gradients are dscore[0], dscore[stride], …: query [width] and the
 * keys, `ld` apart, become their gradients. */
static inline void scores_back(long n, long width, const real *dscore, long stride, real *query, real *key,
                               long ld) {
    for (long first = 0; first < width; first += TILE) {
        long columns = width - first < TILE ? width - first : TILE;
        real sum[TILE] = {0}, *q = query + first;
        for (long i = 0; i < n; i++) {
            real d = dscore[i * stride], *k = key + i * ld + first;
#pragma omp simd
            for (long j = 0; j < columns; j++) {
                sum[j] += d * k[j];
                k[j] = d * q[j];
            }
        }
        for (long j = 0; j < columns; j++) q[j] = sum[j];
    }
}

static void select_weights(long T, long n, long a, const real *query, const real *key, const real *rt,
                           const real *const *rs, real *weight) {
    real root = (real)(1 / sqrt((double)a));
#pragma omp parallel for schedule(static) if (T * n * a >= PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        for (long i = 0; i < n; i++)
            weight[t * n + i] = dot(a, query + t * a, key + (t * n + i) * a) * rt[t] * rs[i][t] * root;
        softmax(n, weight + t * n, 1);
    }
}

static void select_back(long T, long n, long a, long D, real *query, real *key, const real *rt,
                        const real *const *rs, const real *weight, real *dweight, real *ct, real *cs) {
    real root = (real)(1 / sqrt((double)a)), inverse = 1 / (real)D;
#pragma omp parallel for schedule(static) if (T * n * a >= PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        const real *w = weight + t * n;
        real *dw = dweight + t * n, *k = key + t * n * a, *q = query + t * a, mean = 0, drt = 0;
        for (long i = 0; i < n; i++) mean += w[i] * dw[i];
        for (long i = 0; i < n; i++) {
            real r = rs[i][t], dlogit = w[i] * (dw[i] - mean) * root,
                 by_score = dlogit * dot(a, q, k + i * a);
            drt += by_score * r;
            cs[i * T + t] = -by_score * rt[t] * r * r * r * inverse;
            dw[i] = dlogit * rt[t] * r; /* now the gradient of query·key */
        }
        ct[t] = -drt * rt[t] * rt[t] * rt[t] * inverse;
        scores_back(n, a, dw, 1, q, k, a);
    }
}

static void multihead(long T, long n, long D, long heads, const real *query, const real *key, const real *c,
                      real *weight, real *z) {
    long hd = D / heads;
    real root = (real)(1 / sqrt((double)hd));
#pragma omp parallel for schedule(static) if (T * n * D >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long h = 0; h < heads; h++) {
            long first =
                t * n * D + h * hd; /* of this token and head in key and c; connections are D apart */
            real *w = weight + t * n * heads + h, *zh = z + t * D + h * hd; /* weights are `heads` apart */
            for (long i = 0; i < n; i++)
                w[i * heads] = dot(hd, query + t * D + h * hd, key + first + i * D) * root;
            softmax(n, w, heads);
            for (long i = 0; i < n; i++) {
                const real *ci = c + first + i * D, wi = w[i * heads];
#pragma omp simd
                for (long j = 0; j < hd; j++) zh[j] += wi * ci[j];
            }
        }
}

static void multihead_back(long T, long n, long D, long heads, real *query, real *key, const real *c,
                           const real *weight, const real *dz, real *dc) {
    long hd = D / heads;
    real root = (real)(1 / sqrt((double)hd));
#pragma omp parallel for schedule(static) if (T * n * D >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long h = 0; h < heads; h++) {
            long first = t * n * D + h * hd;
            const real *w = weight + t * n * heads + h, *d = dz + t * D + h * hd;
            real mean = 0;                 /* Σ_i weight_i·(dz·c_i) */
            for (long i = 0; i < n; i++) { /* dc's first column holds the scores' gradients for a moment */
                dc[first + i * D] = dot(hd, d, c + first + i * D);
                mean += w[i * heads] * dc[first + i * D];
            }
            for (long i = 0; i < n; i++) dc[first + i * D] = w[i * heads] * (dc[first + i * D] - mean) * root;
            scores_back(n, hd, dc + first, D, query + t * D + h * hd, key + first, D);
            for (long i = 0; i < n; i++) {
                real *dci = dc + first + i * D, wi = w[i * heads];
#pragma omp simd
                for (long j = 0; j < hd; j++) dci[j] = wi * d[j];
            }
        }
}

void ISA_NAME(cpu_delta_mixing)(struct ops *ops) {
    ops->select = select_weights;
    ops->select_back = select_back;
    ops->multihead = multihead;
    ops->multihead_back = multihead_back;
}
