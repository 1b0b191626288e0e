/* Reference operations of the regularisers (model.md 5): gate entropies, and the norms of bottleneck
 * contributions from the Gram matrix of their output projection. */
#include <math.h>
#include <stddef.h>

#include "kernels/reference/delta_parts.h"

static void binary_entropy(long T, long W, const real *g, long ld, double factor, const real *counts,
                           double *sum) {
    double bits = 0;
    for (long i = 0; i < T; i++)
        for (long j = 0; j < W; j++) {
            double x = g[i * ld + j];
            x = x < 1e-7 ? 1e-7 : x > 1 - 1e-7 ? 1 - 1e-7 : x; /* a NaN stays one, here and below */
            bits -= (counts ? counts[i] : 1) * (x * log2(x) + (1 - x) * log2(1 - x));
        }
    *sum += factor * bits;
}

static void softmax_entropy(long T, long W, const real *p, long ld, const real *counts, double *sum) {
    double nats = 0;
    for (long i = 0; i < T; i++)
        for (long j = 0; j < W; j++)
            nats -= (counts ? counts[i] : 1) * p[i * ld + j] * log(fmax(p[i * ld + j], 1e-30));
    *sum += nats / log((double)W);
}

static void gram_rms(long T, long W, long D, const real *v, double sparsity, const real *counts, real *q,
                     real *kv, long ld, real *rms) {
    for (long i = 0; i < T; i++) {
        const double part = counts ? counts[i] : 1;
        double square = 0; /* ‖c‖² = vᵀ(WoᵀWo)v; rounding can make it negative */
        for (long j = i * ld; j < i * ld + W; j++) square += (double)q[j] * v[j];
        double norm = sqrt((square < 0 ? 0 : square) / (double)D + 1e-12),
               k = part * sparsity / ((double)D * norm);
        rms[i] = (real)(part * norm);
        if (sparsity == 0) continue;
        for (long j = i * ld; j < i * ld + W; j++) {
            q[j] = (real)(k * q[j]);
            if (kv) kv[j] = (real)(k * v[j]);
        }
    }
}

void reference_delta_entropy(struct ops *ops) {
    ops->binary_entropy = binary_entropy;
    ops->softmax_entropy = softmax_entropy;
    ops->gram_rms = gram_rms;
}
