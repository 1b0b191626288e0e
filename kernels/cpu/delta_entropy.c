/* CPU operations of the regularisers: gate entropies, and the norms of bottleneck contributions. */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/delta_log.h"
#include "kernels/cpu/delta_parts.h"

enum {
    CHUNKS = 64, /* a sum over all rows is the sum of as many chunks of rows, in order, however many threads
                    form them */
    RUN = 512,   /* terms that are added up as `real`, before they join the rest in double */
};

/* Σ counts·term(x) of chunk c; `term` is a constant where it is called. */
VECTOR_INLINE double chunk_sum(long c, long T, long W, const real *x, long ld, const real *counts,
                               real (*term)(real)) {
    double sum = 0;
    for (long i = T * c / CHUNKS; i < T * (c + 1) / CHUNKS; i++)
        for (long first = 0; first < W; first += RUN) {
            long end = W - first < RUN ? W : first + RUN;
            const real *row = x + i * ld;
            real run = 0;
#pragma omp simd reduction(+ : run)
            for (long j = first; j < end; j++) run += term(row[j]);
            sum += (counts ? counts[i] : 1) * run;
        }
    return sum;
}

static void binary_entropy(long T, long W, const real *g, long ld, double factor, const real *counts,
                           double *sum) {
    double part[CHUNKS], bits = 0;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long c = 0; c < CHUNKS; c++) part[c] = chunk_sum(c, T, W, g, ld, counts, gate_entropy);
    for (long c = 0; c < CHUNKS; c++) bits += part[c];
    *sum += factor * bits;
}

static void softmax_entropy(long T, long W, const real *p, long ld, const real *counts, double *sum) {
    double part[CHUNKS], nats = 0;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long c = 0; c < CHUNKS; c++) part[c] = chunk_sum(c, T, W, p, ld, counts, probability_entropy);
    for (long c = 0; c < CHUNKS; c++) nats += part[c];
    *sum += nats / log((double)W);
}

static void gram_rms(long T, long W, long D, const real *v, double sparsity, const real *counts, real *q,
                     real *kv, long ld, real *rms) {
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        const real *vi = v + i * ld;
        real *qi = q + i * ld, square = 0; /* ‖c‖² = vᵀ(WoᵀWo)v; rounding can make it negative */
#pragma omp simd reduction(+ : square)
        for (long j = 0; j < W; j++) square += qi[j] * vi[j];
        double norm = sqrt((square < 0 ? 0 : square) / (double)D + 1e-12);
        const real part = counts ? counts[i] : 1, k = part * (real)(sparsity / ((double)D * norm));
        rms[i] = part * (real)norm;
        if (sparsity == 0) continue;
#pragma omp simd
        for (long j = 0; j < W; j++) qi[j] *= k;
        if (!kv) continue;
        real *kvi = kv + i * ld;
#pragma omp simd
        for (long j = 0; j < W; j++) kvi[j] = k * vi[j];
    }
}

void ISA_NAME(cpu_delta_entropy)(struct ops *ops) {
    ops->binary_entropy = binary_entropy;
    ops->softmax_entropy = softmax_entropy;
    ops->gram_rms = gram_rms;
}
