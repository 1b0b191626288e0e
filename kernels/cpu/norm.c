/* CPU backend: RMS norm. Rows are shared among the threads; each row is read once from memory. */
#include <math.h>
#include <stddef.h>
#include <omp.h>

#include "kernels/cpu/cpu.h"

/* y = sum·rstd·w of one row, where the row may first have to be formed as x + r. */
static inline real norm_row(long D, const real *x, const real *r, const real *w, real eps, real *sum,
                            real *y) {
    real square = 0;
    if (r) {
#pragma omp simd reduction(+ : square)
        for (long j = 0; j < D; j++) {
            real total = x[j] + r[j];
            sum[j] = total;
            square += total * total;
        }
        x = sum;
    } else {
#pragma omp simd reduction(+ : square)
        for (long j = 0; j < D; j++) square += x[j] * x[j];
    }
    real rstd = 1 / REAL_SQRT(square / (real)D + eps);
#pragma omp simd
    for (long j = 0; j < D; j++) y[j] = x[j] * rstd * w[j];
    return rstd;
}

static void rms_norm(long T, long D, const real *x, const real *w, double eps, real *y, real *rstd) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long t = 0; t < T; t++) rstd[t] = norm_row(D, x + t * D, NULL, w, (real)eps, NULL, y + t * D);
}

static void add_rms_norm(long T, long D, const real *x, const real *r, const real *w, double eps, real *sum,
                         real *y, real *rstd) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        rstd[t] = norm_row(D, x + t * D, r + t * D, w, (real)eps, sum + t * D, y + t * D);
}

static inline real rstd_of(long D, const real *x, real eps) {
    real square = 0;
#pragma omp simd reduction(+ : square)
    for (long j = 0; j < D; j++) square += x[j] * x[j];
    return 1 / REAL_SQRT(square / (real)D + eps);
}

static void row_rstd(long T, long D, const real *x, double eps, real *rstd) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long t = 0; t < T; t++) rstd[t] = rstd_of(D, x + t * D, (real)eps);
}

/* A token's sum stays in the nearest cache from one source to the next. */
static void add_norms(long T, long D, long n, const real *const *s, const real *w, double eps, real *y,
                      real *rstd) {
#pragma omp parallel for schedule(static) if (T * D * n > PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++) {
            const real *x = s[i] + t * D, *wi = w + i * D, factor = rstd_of(D, x, (real)eps);
            real *to = y + t * D;
            rstd[i * T + t] = factor;
#pragma omp simd
            for (long j = 0; j < D; j++) to[j] += x[j] * factor * wi[j];
        }
}

static void row_rstd_back(long T, long D, const real *rstd, const real *drstd, real *k) {
#pragma omp simd
    for (long t = 0; t < T; t++) k[t] = -drstd[t] / (real)D * rstd[t] * rstd[t] * rstd[t];
}

/* With u = w ⊙ dy: dx += rstd·u − x·rstd³·(u·x)/D, and the row's share of dw, of `width` columns from
 * `first`. */
static inline void back_row(long D, long first, long width, const real *x, const real *w, real rstd,
                            const real *dy, real *dx, real *part) {
    real dot = 0;
#pragma omp simd reduction(+ : dot)
    for (long j = 0; j < D; j++) dot += dy[j] * w[j] * x[j];
    real back = dot / (real)D * rstd * rstd * rstd;
    x += first, w += first, dy += first, dx += first;
#pragma omp simd
    for (long j = 0; j < width; j++) {
        dx[j] += rstd * w[j] * dy[j] - back * x[j];
        part[j] += dy[j] * x[j] * rstd;
    }
}

/* Every thread sums its rows' share of dw on its stack; the shares are added in the order of the threads.
 * Rows wider than the stack's block are taken in several passes. */
static void rms_norm_back(long T, long D, const real *x, const real *w, const real *rstd, const real *dy,
                          real *dx, real *dw) {
    enum { BLOCK = 8192 };
#pragma omp parallel if (T * D > PARALLEL_WORK)
    for (long first = 0; first < D; first += BLOCK) {
        long width = D - first < BLOCK ? D - first : BLOCK;
        real part[BLOCK];
        for (long j = 0; j < width; j++) part[j] = 0;
#pragma omp for schedule(static) nowait
        for (long t = 0; t < T; t++)
            back_row(D, first, width, x + t * D, w, rstd[t], dy + t * D, dx + t * D, part);
#pragma omp for ordered schedule(static, 1)
        for (int thread = 0; thread < omp_get_num_threads(); thread++)
#pragma omp ordered
            for (long j = 0; j < width; j++) dw[first + j] += part[j];
    }
}

void ISA_NAME(cpu_norm)(struct ops *ops) {
    ops->rms_norm = rms_norm;
    ops->add_rms_norm = add_rms_norm;
    ops->row_rstd = row_rstd;
    ops->row_rstd_back = row_rstd_back;
    ops->add_norms = add_norms;
    ops->rms_norm_back = rms_norm_back;
}
