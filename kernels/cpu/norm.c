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

static inline real less_rstd(long D, const real *s, const real *p, real eps) {
    real square = 0;
#pragma omp simd reduction(+ : square)
    for (long j = 0; j < D; j++) square += (s[j] - p[j]) * (s[j] - p[j]);
    return 1 / REAL_SQRT(square / (real)D + eps);
}

static void row_rstd(long T, long D, const real *x, double eps, real *rstd) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long t = 0; t < T; t++) rstd[t] = rstd_of(D, x + t * D, (real)eps);
}

/* Columns of one weight a: y += (w + a) ⊙ s·rstd, or of s − p. */
static inline void add_group(long D, const real *s, const real *p, const real *w, real a, real rstd,
                             real *y) {
    if (p)
#pragma omp simd
        for (long j = 0; j < D; j++) y[j] += (s[j] - p[j]) * rstd * (w[j] + a);
    else
#pragma omp simd
        for (long j = 0; j < D; j++) y[j] += s[j] * rstd * (w[j] + a);
}

/* A token's sum stays in the nearest cache from one source to the next. */
static void add_norms(long T, long D, long G, long n, const real *const *s, const real *const *p,
                      const real *w, const real *a, long lda, double eps, real *y, real *rstd) {
    long groups = a ? G : 1, width = D / groups;
#pragma omp parallel for schedule(static) if (T * D * n > PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++) {
            const real *x = s[i] + t * D, *before = p ? p[i] + t * D : NULL;
            real factor = p ? less_rstd(D, x, before, (real)eps) : rstd_of(D, x, (real)eps);
            rstd[i * T + t] = factor;
            for (long g = 0; g < groups; g++)
                add_group(width, x + g * width, p ? before + g * width : NULL, w + i * D + g * width,
                          a ? a[t * lda + i * G + g] : 0, factor, y + t * D + g * width);
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

/* The row of a source as add_norms takes it: of D columns in `groups`. */
struct term {
    long D, groups;
    const real *s, *p, *w, *a, *dy;
};

/* The part of Σ dy ⊙ (w + a) ⊙ (s − p) of one group, and *da that of Σ dy ⊙ (s − p). */
static inline real dot_group(const struct term *x, long g, real *da) {
    long width = x->D / x->groups, at = g * width;
    const real *s = x->s + at, *p = x->p, *w = x->w + at, *dy = x->dy + at;
    real dot = 0, sum = 0;
    if (p) {
        p += at;
#pragma omp simd reduction(+ : dot, sum)
        for (long j = 0; j < width; j++) {
            real term = dy[j] * (s[j] - p[j]);
            sum += term, dot += term * w[j];
        }
    } else {
#pragma omp simd reduction(+ : dot, sum)
        for (long j = 0; j < width; j++) {
            real term = dy[j] * s[j];
            sum += term, dot += term * w[j];
        }
    }
    *da = sum;
    return dot + (x->a ? x->a[g] : 0) * sum;
}

/* Columns from `first` to `end`, of one group: ds += rstd·(w + a) ⊙ dy − back·x, x = s − p; dw += dy ⊙
 * x·rstd. */
static inline void spread_group(const struct term *x, long first, long end, real a, real rstd, real back,
                                real *ds, real *dp, real *dw) {
    const real *s = x->s, *p = x->p, *w = x->w, *dy = x->dy;
    if (p)
#pragma omp simd
        for (long j = first; j < end; j++) {
            real less = s[j] - p[j], slope = rstd * (w[j] + a) * dy[j] - back * less;
            ds[j] += slope, dp[j] -= slope;
            dw[j] += dy[j] * less * rstd;
        }
    else
#pragma omp simd
        for (long j = first; j < end; j++) {
            ds[j] += rstd * (w[j] + a) * dy[j] - back * s[j];
            dw[j] += dy[j] * s[j] * rstd;
        }
}

/* Of columns first to end; part [end − first]. da is written with the first of them. */
static inline void back_term(const struct term *x, long first, long end, real rstd, real *ds, real *dp,
                             real *part, real *da) {
    long width = x->D / x->groups;
    real dot = 0, sum;
    for (long g = 0; g < x->groups; g++) {
        dot += dot_group(x, g, &sum);
        if (x->a && !first) da[g] = sum * rstd;
    }
    if (!ds) return;
    real back = dot / (real)x->D * rstd * rstd * rstd;
    for (long g = first / width; g * width < end; g++) {
        long from = g * width > first ? g * width : first, to = (g + 1) * width < end ? (g + 1) * width : end;
        spread_group(x, from, to, x->a ? x->a[g] : 0, rstd, back, ds, dp, part - first);
    }
}

/* As rms_norm_back adds up its dw. */
static void add_norm_back(long T, long D, long G, const real *s, const real *p, const real *w, const real *a,
                          long lda, const real *rstd, const real *dy, real *ds, real *dp, real *dw,
                          real *da) {
    enum { BLOCK = 8192 };
#pragma omp parallel if (T * D > PARALLEL_WORK)
    for (long first = 0; first < (ds ? D : 1); first += BLOCK) {
        long end = D - first < BLOCK ? D : first + BLOCK;
        real part[BLOCK];
        for (long j = 0; j < end - first; j++) part[j] = 0;
#pragma omp for schedule(static) nowait
        for (long t = 0; t < T; t++) {
            const struct term x = {
                D, a ? G : 1, s + t * D, p ? p + t * D : NULL, w, a ? a + t * lda : NULL, dy + t * D};
            back_term(&x, first, end, rstd[t], ds ? ds + t * D : NULL, p && ds ? dp + t * D : NULL, part,
                      a ? da + t * lda : NULL);
        }
#pragma omp for ordered schedule(static, 1)
        for (int thread = 0; thread < omp_get_num_threads(); thread++)
#pragma omp ordered
            for (long j = 0; ds && j < end - first; j++) dw[first + j] += part[j];
    }
}

void ISA_NAME(cpu_norm)(struct ops *ops) {
    ops->rms_norm = rms_norm;
    ops->add_rms_norm = add_rms_norm;
    ops->row_rstd = row_rstd;
    ops->row_rstd_back = row_rstd_back;
    ops->add_norms = add_norms;
    ops->rms_norm_back = rms_norm_back;
    ops->add_norm_back = add_norm_back;
}
