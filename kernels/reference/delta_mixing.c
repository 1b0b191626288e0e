/* Reference operations of the aggregates `attention` and `multihead` (model.md 4): softmax weights over the n
 * connections into a layer. */
#include <math.h>
#include <stddef.h>

#include "kernels/reference/delta_parts.h"

static double dot(long n, const real *x, const real *y) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* Softmax, in place, over n values `stride` apart. */
static void softmax(long n, real *x, long stride) {
    double largest = -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) largest = fmax(largest, x[i * stride]);
    for (long i = 0; i < n; i++) sum += exp(x[i * stride] - largest);
    for (long i = 0; i < n; i++) x[i * stride] = (real)(exp(x[i * stride] - largest) / sum);
}

/* Backward of n scores query·key_i, whose gradients are dscore[0], dscore[stride], …: query [width] and the
 * keys, `ld` apart, become their gradients. */
static void scores_back(long n, long width, const real *dscore, long stride, real *query, real *key,
                        long ld) {
    for (long j = 0; j < width; j++) {
        double sum = 0;
        for (long i = 0; i < n; i++) {
            sum += (double)dscore[i * stride] * key[i * ld + j];
            key[i * ld + j] = dscore[i * stride] * query[j];
        }
        query[j] = (real)sum;
    }
}

static void select_weights(long T, long n, long a, const real *query, const real *key, const real *rt,
                           const real *const *rs, real *weight) {
    for (long t = 0; t < T; t++) {
        for (long i = 0; i < n; i++) {
            double score = dot(a, query + t * a, key + (t * n + i) * a);
            weight[t * n + i] = (real)(score * rt[t] * rs[i][t] / sqrt((double)a));
        }
        softmax(n, weight + t * n, 1);
    }
}

static void select_back(long T, long n, long a, long D, real *query, real *key, const real *rt,
                        const real *const *rs, const real *weight, real *dweight, real *ct, real *cs) {
    double root = sqrt((double)a);
    for (long t = 0; t < T; t++) {
        const real *w = weight + t * n;
        real *dw = dweight + t * n, *k = key + t * n * a, *q = query + t * a;
        double mean = dot(n, w, dw), drt = 0;
        for (long i = 0; i < n; i++) {
            double r = rs[i][t], score = dot(a, q, k + i * a), dlogit = w[i] * (dw[i] - mean);
            double drs = dlogit * score * rt[t] / root;
            drt += dlogit * score * r / root;
            cs[i * T + t] = (real)(-drs * r * r * r / (double)D);
            dw[i] = (real)(dlogit * rt[t] * r / root); /* now the gradient of query·key */
        }
        ct[t] = (real)(-drt * rt[t] * rt[t] * rt[t] / (double)D);
        scores_back(n, a, dw, 1, q, k, a);
    }
}

static void multihead(long T, long n, long D, long heads, const real *query, const real *key, const real *c,
                      real *weight, real *z) {
    long hd = D / heads;
    for (long t = 0; t < T; t++)
        for (long h = 0; h < heads; h++) {
            real *w = weight + t * n * heads + h; /* n values, `heads` apart */
            for (long i = 0; i < n; i++) {
                double score = dot(hd, query + t * D + h * hd, key + (t * n + i) * D + h * hd);
                w[i * heads] = (real)(score / sqrt((double)hd));
            }
            softmax(n, w, heads);
            for (long j = h * hd; j < (h + 1) * hd; j++) {
                double sum = 0;
                for (long i = 0; i < n; i++) sum += (double)w[i * heads] * c[(t * n + i) * D + j];
                z[t * D + j] += (real)sum;
            }
        }
}

static void multihead_back(long T, long n, long D, long heads, real *query, real *key, const real *c,
                           const real *weight, const real *dz, real *dc) {
    long hd = D / heads;
    for (long t = 0; t < T; t++)
        for (long h = 0; h < heads; h++) {
            long first =
                t * n * D + h * hd; /* of this token and head in key, c and dc; connections are D apart */
            const real *w = weight + t * n * heads + h, *d = dz + t * D + h * hd;
            double mean = 0; /* Σ_i weight_i·(dz·c_i) */
            for (long i = 0; i < n; i++) mean += w[i * heads] * dot(hd, d, c + first + i * D);
            for (long i = 0; i < n; i++) { /* dc's first column holds the scores' gradients for a moment */
                double dweight = dot(hd, d, c + first + i * D);
                dc[first + i * D] = (real)(w[i * heads] * (dweight - mean) / sqrt((double)hd));
            }
            scores_back(n, hd, dc + first, D, query + t * D + h * hd, key + first, D);
            for (long i = 0; i < n; i++)
                for (long j = 0; j < hd; j++) dc[first + i * D + j] = w[i * heads] * d[j];
        }
}

void reference_delta_mixing(struct ops *ops) {
    ops->select = select_weights;
    ops->select_back = select_back;
    ops->multihead = multihead;
    ops->multihead_back = multihead_back;
}
