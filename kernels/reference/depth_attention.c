/* Reference operations of attention over depth (model.md 12): each token's weighted sum of n sources,
 * weighted by a softmax of what one query makes of each. */
#include <math.h>
#include <stddef.h>

#include "kernels/reference/delta_parts.h"

static double dot(long n, const real *x, const real *y) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

static double inverse_rms(long D, const real *h, double eps) {
    return 1 / sqrt(dot(D, h, h) / (double)D + eps);
}

/* Of the token whose rows begin at `at`: weight [n], a softmax among them, and with `null` a score of 0. */
static void weigh(long at, long n, long D, const real *query, const real *const *h, double eps, bool null,
                  double *weight) {
    double largest = null ? 0 : -INFINITY, sum = 0;
    for (long i = 0; i < n; i++) {
        weight[i] = dot(D, query, h[i] + at) * inverse_rms(D, h[i] + at, eps);
        largest = fmax(largest, weight[i]);
    }
    for (long i = 0; i < n; i++) sum += exp(weight[i] - largest);
    if (null) sum += exp(-largest);
    for (long i = 0; i < n; i++) weight[i] = exp(weight[i] - largest) / sum;
}

static void depth_attention(long T, long n, long D, const real *query, const real *const *h, double eps,
                            const real *lambda, real *x) {
    double weight[OPS_CONNECTIONS];
    for (long at = 0; at < T * D; at += D) {
        weigh(at, n, D, query, h, eps, lambda, weight);
        for (long j = at; j < at + D; j++) {
            double attended = 0;
            for (long i = 0; i < n; i++) attended += weight[i] * h[i][j];
            x[j] = (real)(lambda ? x[j] + *lambda * (attended - x[j]) : attended);
        }
    }
}

/* With a_i = dout·h_i: dscore_i = λ·p_i·(a_i − Σ p·a), and a score is rstd_i·(query·h_i). */
static void depth_attention_back(long T, long n, long D, const real *query, const real *const *h, double eps,
                                 const real *lambda, const real *x, const real *dout, real *const *dh,
                                 real *dquery, real *dlambda) {
    double weight[OPS_CONNECTIONS], strength = lambda ? *lambda : 1;
    for (long t = 0; t < T; t++) {
        long at = t * D;
        double mean = 0;
        weigh(at, n, D, query, h, eps, lambda, weight);
        for (long i = 0; i < n; i++) mean += weight[i] * dot(D, dout + at, h[i] + at);
        if (lambda) dlambda[t] = (real)(mean - dot(D, dout + at, x + at));
        for (long j = at; j < at + D; j++) dquery[j] = 0;
        for (long i = 0; i < n; i++) {
            double rstd = inverse_rms(D, h[i] + at, eps), product = dot(D, query, h[i] + at),
                   dscore = strength * weight[i] * (dot(D, dout + at, h[i] + at) - mean);
            for (long j = at; j < at + D; j++) {
                dh[i][j] += (real)(strength * weight[i] * dout[j] + dscore * rstd * query[j - at] -
                                   dscore * rstd * rstd * rstd * product / (double)D * h[i][j]);
                dquery[j] += (real)(dscore * rstd * h[i][j]);
            }
        }
    }
}

void reference_depth_attention(struct ops *ops) {
    ops->depth_attention = depth_attention;
    ops->depth_attention_back = depth_attention_back;
}
