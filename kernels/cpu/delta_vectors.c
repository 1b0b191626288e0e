/* CPU operations that work on whole deltas t − s: differences and norms. Bound by memory, each one pass. */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/delta_parts.h"
#include "kernels/cpu/vector_math.h"

static void delta_mean(long T, long D, const real *t, const real *s, real *delta, real *mean) {
    const long piece = 1024; /* what the first loop has read is still in the nearest cache for the second */
#pragma omp parallel for schedule(static) if (T * D >= PARALLEL_WORK)
    for (long i = 0; i < T * D; i += piece) {
        long end = T * D - i < piece ? T * D : i + piece;
        if (delta) {
#pragma omp simd
            for (long j = i; j < end; j++) delta[j] = t[j] - s[j];
        }
        if (mean) {
#pragma omp simd
            for (long j = i; j < end; j++) mean[j] = (t[j] + s[j]) * (real)0.5;
        }
    }
}

/* ‖t − s‖² of one row. */
static inline real square_distance(long D, const real *t, const real *s) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < D; j++) sum += (t[j] - s[j]) * (t[j] - s[j]);
    return sum;
}

static void delta_inverse_norm(long T, long D, const real *t, const real *s, double eps, real *inv) {
#pragma omp parallel for schedule(static) if (T * D >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        double norm = sqrt(square_distance(D, t + i * D, s + i * D));
        inv[i] = (real)(1 / (norm < eps ? eps : norm)); /* a NaN stays one */
    }
}

static void delta_magnitude(long T, long D, const real *t, const real *s, const real *r, double eps, real *e,
                            long lde, real *square) {
#pragma omp parallel for schedule(static) if (T * D >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        double mean = square_distance(D, t + i * D, s + i * D) / (double)D, factor = r ? r[i] : 1;
        e[i * lde] = (real)sqrt(factor * factor * mean + eps);
        square[i] = (real)mean;
    }
}

/* One row of delta_spread; has_d and has_k are constants where it is called. */
VECTOR_INLINE void spread_row(long D, bool has_d, const real *d, bool has_k, real k, const real *t,
                              const real *s, real *dt, real *ds) {
#pragma omp simd
    for (long j = 0; j < D; j++) {
        real e = (has_d ? d[j] : 0) + (has_k ? k * (t[j] - s[j]) : 0);
        dt[j] += e;
        ds[j] -= e;
    }
}

static void delta_spread(long T, long D, const real *d, const real *k, const real *t, const real *s, real *dt,
                         real *ds) {
#pragma omp parallel for schedule(static) if (T * D >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        long at = i * D;
        if (d && k)
            spread_row(D, true, d + at, true, k[i], t + at, s + at, dt + at, ds + at);
        else if (d)
            spread_row(D, true, d + at, false, 0, NULL, NULL, dt + at, ds + at);
        else if (k)
            spread_row(D, false, NULL, true, k[i], t + at, s + at, dt + at, ds + at);
    }
}

void ISA_NAME(cpu_delta_vectors)(struct ops *ops) {
    ops->delta_mean = delta_mean;
    ops->delta_inverse_norm = delta_inverse_norm;
    ops->delta_magnitude = delta_magnitude;
    ops->delta_spread = delta_spread;
}
