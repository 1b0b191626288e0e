/* Reference operations of the gates: the gate MLP's activation, and the bottleneck, sigmoid and softmax gates
 * with their backward passes (model.md 3). Entropy's part of a gate's gradient is added here (model.md 5). */
#include <math.h>
#include <stddef.h>

#include "kernels/reference/delta_parts.h"

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Derivative of the binary entropy in bits; the clamp makes it constant near 0 and 1. */
static double binary_entropy_slope(double g) {
    if (g < 1e-7 || g > 1 - 1e-7) return 0;
    return log2((1 - g) / g);
}

static void bias_silu(long T, long W, const real *bias, real *x, real *h) {
    for (long i = 0; i < T; i++)
        for (long j = 0; j < W; j++) {
            real *a = &x[i * W + j];
            *a += bias[j];
            h[i * W + j] = (real)(*a * sigmoid(*a));
        }
}

static void silu(long n, const real *x, real *h) {
    for (long i = 0; i < n; i++) h[i] = (real)(x[i] * sigmoid(x[i]));
}

static void silu_back(long n, const real *x, const real *dh, real *dx) {
    for (long i = 0; i < n; i++) {
        double g = sigmoid(x[i]);
        dx[i] = (real)(dh[i] * g * (1 + x[i] * (1 - g)));
    }
}

static void bottleneck_gate(long T, long n, long Hd, const real *bias, const real *p, const real *r,
                            const real *scale, const real *weight, real *g, real *v) {
    long W = n * Hd;
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++) {
            double factor = scale[i] * (r ? r[i * T + t] : 1.0) * (weight ? weight[t * n + i] : 1.0);
            for (long j = i * Hd; j < (i + 1) * Hd; j++) {
                long at = t * W + j;
                g[at] = (real)sigmoid((double)g[at] + bias[j]);
                v[at] = (real)(factor * p[at] * g[at]);
            }
        }
}

static void scale_connections(long T, long n, long Hd, const real *weight, const real *x, real *y) {
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++)
            for (long at = (t * n + i) * Hd; at < (t * n + i + 1) * Hd; at++)
                y[at] = weight[t * n + i] * x[at];
}

static void bottleneck_gate_back(long T, long n, long Hd, const real *p, const real *r, const real *scale,
                                 const real *weight, const real *extra, double entropy, const real *counts,
                                 real *g, real *dv, real *dweight, real *dr) {
    long W = n * Hd;
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++) {
            double row = r ? r[i * T + t] : 1, w = weight ? weight[t * n + i] : 1, f = scale[i] * row;
            double sum_weight = 0, sum_row = 0, slope = entropy * (counts ? counts[t] : 1);
            for (long at = t * W + i * Hd; at < t * W + (i + 1) * Hd; at++) {
                double gate = g[at];
                double du = w * dv[at] + (extra ? extra[at] : 0); /* of the unweighted v = f·p·gate */
                double dgate = f * p[at] * du + slope * binary_entropy_slope(gate);
                sum_weight += dv[at] * f * p[at] * gate;
                sum_row += du * scale[i] * p[at] * gate;
                dv[at] = (real)(f * gate * du);
                g[at] = (real)(dgate * gate * (1 - gate));
            }
            dweight[t * n + i] = (real)sum_weight;
            if (dr) dr[i * T + t] = (real)sum_row;
        }
}

static void sigmoid_gate(long T, long W, double scale, const real *r, const real *x, real *g, long ld) {
    for (long i = 0; i < T; i++)
        for (long j = i * ld; j < i * ld + W; j++) g[j] = (real)sigmoid(scale * (r ? r[i] : 1) * x[j]);
}

static void sigmoid_gate_back(long T, long W, double scale, const real *r, const real *x, const real *g,
                              long ld, double entropy, const real *counts, real *dg, long lddg, real *dr) {
    for (long i = 0; i < T; i++) {
        double row = r ? r[i] : 1, sum = 0, slope = entropy * (counts ? counts[i] : 1);
        for (long j = 0; j < W; j++) {
            double gate = g[i * ld + j];
            double total = dg[i * lddg + j] + slope * binary_entropy_slope(gate);
            double dlogit = total * gate * (1 - gate);
            dg[i * lddg + j] = (real)(scale * row * dlogit);
            sum += scale * x[i * ld + j] * dlogit;
        }
        if (r) dr[i] += (real)sum;
    }
}

static void softmax_gate(long T, long W, const real *bias, double inv_temperature, real *x, long ld) {
    for (long i = 0; i < T; i++) {
        real *row = x + i * ld;
        double largest = -INFINITY, sum = 0;
        for (long j = 0; j < W; j++) largest = fmax(largest, ((double)row[j] + bias[j]) * inv_temperature);
        for (long j = 0; j < W; j++) sum += exp(((double)row[j] + bias[j]) * inv_temperature - largest);
        for (long j = 0; j < W; j++)
            row[j] = (real)(exp(((double)row[j] + bias[j]) * inv_temperature - largest) / sum);
    }
}

/* Derivative of −p·ln(max(p, 1e-30)) / ln W. */
static double softmax_entropy_slope(double p, long W) {
    return (p < 1e-30 ? -log(1e-30) : -log(p) - 1) / log((double)W);
}

static void softmax_gate_back(long T, long W, double inv_temperature, const real *p, long ld, double entropy,
                              const real *counts, real *dp, long lddp) {
    for (long i = 0; i < T; i++) {
        const real *prob = p + i * ld;
        real *d = dp + i * lddp;
        double mean = 0, slope = entropy * (counts ? counts[i] : 1); /* mean: Σ p·(dL/dp) */
        for (long j = 0; j < W; j++)
            mean += prob[j] * (d[j] + (entropy != 0 ? slope * softmax_entropy_slope(prob[j], W) : 0));
        for (long j = 0; j < W; j++) {
            double total = d[j] + (entropy != 0 ? slope * softmax_entropy_slope(prob[j], W) : 0);
            d[j] = (real)(inv_temperature * prob[j] * (total - mean));
        }
    }
}

void reference_delta_gates(struct ops *ops) {
    ops->bias_silu = bias_silu;
    ops->silu = silu;
    ops->silu_back = silu_back;
    ops->bottleneck_gate = bottleneck_gate;
    ops->scale_connections = scale_connections;
    ops->bottleneck_gate_back = bottleneck_gate_back;
    ops->sigmoid_gate = sigmoid_gate;
    ops->sigmoid_gate_back = sigmoid_gate_back;
    ops->softmax_gate = softmax_gate;
    ops->softmax_gate_back = softmax_gate_back;
}
