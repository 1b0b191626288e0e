/* CPU operations of attention over depth: tokens are shared among the threads. Of a token each source's row
 * comes from memory once, for its score, and is still in the nearest cache for the sum, or the gradient. */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/delta_parts.h"
#include "kernels/cpu/delta_tile.h"
#include "kernels/cpu/vector_math.h"

/* What is the same of all tokens. */
struct depth {
    long n, D;
    const real *query, *const *h, *lambda;
    real eps;
};

/* Of one token and each source: query·h, the inverse rms of h, and the weight. */
struct weights {
    real product[OPS_CONNECTIONS], rstd[OPS_CONNECTIONS], p[OPS_CONNECTIONS];
};

static inline real dot(long n, const real *x, const real *y) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < n; j++) sum += x[j] * y[j];
    return sum;
}

/* Softmax of the scores in p, and of 0 where there is a null source. */
static inline void softmax(long n, bool null, real *p) {
    real largest = null ? 0 : -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = p[i] > largest ? p[i] : largest;
    for (long i = 0; i < n; i++) sum += p[i] = vector_exp(p[i] - largest);
    if (null) sum += vector_exp(-largest);
    for (long i = 0; i < n; i++) p[i] /= sum;
}

/* Of the token whose rows begin at `at`. */
static inline void weigh(const struct depth *d, long at, struct weights *w) {
    const long D = d->D;
    for (long i = 0; i < d->n; i++) {
        const real *query = d->query, *h = d->h[i] + at;
        real product = 0, square = 0;
#pragma omp simd reduction(+ : product, square)
        for (long j = 0; j < D; j++) {
            product += query[j] * h[j];
            square += h[j] * h[j];
        }
        w->product[i] = product;
        w->rstd[i] = 1 / REAL_SQRT(square / (real)D + d->eps);
        w->p[i] = product * w->rstd[i];
    }
    softmax(d->n, d->lambda, w->p);
}

/* x of a token: what its sources sum up to, or x with a part of that. */
static inline void attend(const struct depth *d, long at, const struct weights *w, real *x) {
    for (long first = 0; first < d->D; first += TILE) {
        long columns = d->D - first < TILE ? d->D - first : TILE;
        real sum[TILE] = {0};
        for (long i = 0; i < d->n; i++) {
            const real *h = d->h[i] + at + first, p = w->p[i];
#pragma omp simd
            for (long j = 0; j < columns; j++) sum[j] += p * h[j];
        }
        real part = d->lambda ? *d->lambda : 1, *to = x + first;
        if (d->lambda) {
#pragma omp simd
            for (long j = 0; j < columns; j++) to[j] += part * (sum[j] - to[j]);
        } else {
#pragma omp simd
            for (long j = 0; j < columns; j++) to[j] = sum[j];
        }
    }
}

static void depth_attention(long T, long n, long D, const real *query, const real *const *h, double eps,
                            const real *lambda, real *x) {
    const struct depth d = {n, D, query, h, lambda, (real)eps};
#pragma omp parallel for schedule(static) if (T * n * D >= PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        struct weights w;
        weigh(&d, t * D, &w);
        attend(&d, t * D, &w, x + t * D);
    }
}

/* A source's gradient: of its value, weighted by `value`, and of its score, of which `score` is the factor of
 * query and `norm` that of h itself. Adds the source's terms of the query's gradient. */
static inline void source_back(long D, real value, real score, real norm, const real *query, const real *h,
                               const real *dout, real *dh, real *dquery) {
#pragma omp simd
    for (long j = 0; j < D; j++) {
        dh[j] += value * dout[j] + score * query[j] - norm * h[j];
        dquery[j] += score * h[j];
    }
}

/* With a_i = dout·h_i: dscore_i = λ·p_i·(a_i − Σ p·a). */
static inline void token_back(const struct depth *d, long at, const real *x, const real *dout,
                              real *const *dh, real *dquery, real *dlambda) {
    const real strength = d->lambda ? *d->lambda : 1;
    struct weights w;
    real a[OPS_CONNECTIONS], mean = 0;
    weigh(d, at, &w);
    for (long i = 0; i < d->n; i++) {
        a[i] = dot(d->D, dout, d->h[i] + at);
        mean += w.p[i] * a[i];
    }
    if (d->lambda) *dlambda = mean - dot(d->D, dout, x);
    for (long j = 0; j < d->D; j++) dquery[j] = 0;
    for (long i = 0; i < d->n; i++) {
        real r = w.rstd[i], score = strength * w.p[i] * (a[i] - mean) * r;
        source_back(d->D, strength * w.p[i], score, score * r * r * w.product[i] / (real)d->D, d->query,
                    d->h[i] + at, dout, dh[i] + at, dquery);
    }
}

static void depth_attention_back(long T, long n, long D, const real *query, const real *const *h, double eps,
                                 const real *lambda, const real *x, const real *dout, real *const *dh,
                                 real *dquery, real *dlambda) {
    const struct depth d = {n, D, query, h, lambda, (real)eps};
#pragma omp parallel for schedule(static) if (T * n * D >= PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        long at = t * D;
        token_back(&d, at, lambda ? x + at : NULL, dout + at, dh, dquery + at, lambda ? dlambda + t : NULL);
    }
}

void ISA_NAME(cpu_depth_attention)(struct ops *ops) {
    ops->depth_attention = depth_attention;
    ops->depth_attention_back = depth_attention_back;
}
