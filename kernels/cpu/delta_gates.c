/* CPU operations of the gates that work on single columns: the gate MLP's activation, the sigmoid and the
 * softmax gate, with their backward passes. Bound by the exponential. */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/delta_log.h"
#include "kernels/cpu/delta_parts.h"

static void bias_silu(long T, long W, const real *bias, real *x, real *h) {
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        real *xi = x + i * W, *hi = h + i * W;
#pragma omp simd
        for (long j = 0; j < W; j++) {
            xi[j] += bias[j];
            hi[j] = vector_silu(xi[j]);
        }
    }
}

static void silu(long n, const real *x, real *h) {
#pragma omp parallel for schedule(static) if (n >= PARALLEL_WORK)
    for (long i = 0; i < n; i += PIECE) {
        long end = n - i < PIECE ? n : i + PIECE;
#pragma omp simd
        for (long j = i; j < end; j++) h[j] = vector_silu(x[j]);
    }
}

static void silu_back(long n, const real *x, const real *dh, real *dx) {
#pragma omp parallel for schedule(static) if (n >= PARALLEL_WORK)
    for (long i = 0; i < n; i += PIECE) {
        long end = n - i < PIECE ? n : i + PIECE;
#pragma omp simd
        for (long j = i; j < end; j++) dx[j] = dh[j] * vector_silu_slope(x[j]);
    }
}

static void sigmoid_gate(long T, long W, double scale, const real *r, const real *x, real *g, long ld) {
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        real factor = (real)(scale * (r ? r[i] : 1));
        const real *xi = x + i * ld;
        real *gi = g + i * ld;
#pragma omp simd
        for (long j = 0; j < W; j++) gi[j] = vector_sigmoid(factor * xi[j]);
    }
}

/* dg becomes the gradient of factor·x, and its product with x is summed. has_entropy is a constant where it
 * is called. */
VECTOR_INLINE real sigmoid_row_back(long W, real factor, const real *x, const real *g, bool has_entropy,
                                    real entropy, real *dg) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < W; j++) {
        real total = dg[j] + (has_entropy ? entropy * gate_entropy_slope(g[j]) : 0);
        real dlogit = total * g[j] * (1 - g[j]);
        sum += dlogit * x[j];
        dg[j] = factor * dlogit;
    }
    return sum;
}

static void sigmoid_gate_back(long T, long W, double scale, const real *r, const real *x, const real *g,
                              long ld, double entropy, const real *counts, real *dg, long lddg, real *dr) {
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        real factor = (real)(scale * (r ? r[i] : 1)), *d = dg + i * lddg;
        const real *xi = x + i * ld, *gi = g + i * ld;
        const real part = counts ? counts[i] : 1;
        real sum = entropy != 0 ? sigmoid_row_back(W, factor, xi, gi, true, part * (real)entropy, d)
                                : sigmoid_row_back(W, factor, xi, gi, false, 0, d);
        if (r) dr[i] += (real)scale * sum;
    }
}

static void softmax_gate(long T, long W, const real *bias, double inv_temperature, real *x, long ld) {
    real inverse = (real)inv_temperature;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        real *row = x + i * ld, largest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : largest)
        for (long j = 0; j < W; j++) {
            row[j] = (row[j] + bias[j]) * inverse;
            largest = row[j] > largest ? row[j] : largest;
        }
#pragma omp simd reduction(+ : sum)
        for (long j = 0; j < W; j++) {
            row[j] = vector_exp(row[j] - largest);
            sum += row[j];
        }
        real factor = 1 / sum;
#pragma omp simd
        for (long j = 0; j < W; j++) row[j] *= factor;
    }
}

static void softmax_gate_back(long T, long W, double inv_temperature, const real *p, long ld, double entropy,
                              const real *counts, real *dp, long lddp) {
    real inverse = (real)inv_temperature, k = entropy != 0 ? (real)(entropy / log((double)W)) : 0;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        const real *prob = p + i * ld;
        real *d = dp + i * lddp, mean = 0; /* Σ p·(dL/dp) */
        if (entropy != 0) {
            const real slope = k * (counts ? counts[i] : 1);
#pragma omp simd
            for (long j = 0; j < W; j++) d[j] += slope * probability_entropy_slope(prob[j]);
        }
#pragma omp simd reduction(+ : mean)
        for (long j = 0; j < W; j++) mean += prob[j] * d[j];
#pragma omp simd
        for (long j = 0; j < W; j++) d[j] = inverse * prob[j] * (d[j] - mean);
    }
}

void ISA_NAME(cpu_delta_gates)(struct ops *ops) {
    ops->bias_silu = bias_silu;
    ops->silu = silu;
    ops->silu_back = silu_back;
    ops->sigmoid_gate = sigmoid_gate;
    ops->sigmoid_gate_back = sigmoid_gate_back;
    ops->softmax_gate = softmax_gate;
    ops->softmax_gate_back = softmax_gate_back;
}
