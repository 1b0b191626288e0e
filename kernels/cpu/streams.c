/* CPU operations of several residual streams: tokens are shared among the threads. What goes over columns
 * knows how many streams there are when it is compiled, so that a column's numbers stay in registers. */
#include "kernels/base/streams.h"
#include "kernels/cpu/delta_parts.h"
#include "kernels/cpu/vector_math.h"

/* Calls it with n as a constant: of 2, 4 or 8. */
#define WITH_STREAMS(call, ...)                                                                              \
    do {                                                                                                     \
        if (n == 2)                                                                                          \
            call(2, __VA_ARGS__);                                                                            \
        else if (n == 4)                                                                                     \
            call(4, __VA_ARGS__);                                                                            \
        else                                                                                                 \
            call(8, __VA_ARGS__);                                                                            \
    } while (0)

#define EACH_TOKEN(t)                                                                                        \
    _Pragma("omp parallel for schedule(static) if (T * n * D >= PARALLEL_WORK)") for (long t = 0; t < T; t++)

/* Of a token: x [n, D]. By halves, so that the mean of streams that are the same is each of them to the bit.
 */
VECTOR_INLINE void sum_of(long n, long D, real factor, const real *restrict x, real *restrict y) {
#pragma omp simd
    for (long j = 0; j < D; j++) {
        real sum[STREAMS_MAX];
        for (long i = 0; i < n; i++) sum[i] = x[i * D + j];
        if (n > 4)
            for (long i = 0; i < 4; i++) sum[i] += sum[4 + i];
        if (n > 2)
            for (long i = 0; i < 2; i++) sum[i] += sum[2 + i];
        y[j] = factor * (sum[0] + sum[1]);
    }
}

static void streams_sum(long T, long n, long D, real factor, const real *x, real *y) {
    EACH_TOKEN(t) WITH_STREAMS(sum_of, D, factor, x + t * n * D, y + t * D);
}

static void streams_spread(long T, long n, long D, real factor, const real *x, real *y) {
    EACH_TOKEN(t) {
        const real *from = x + t * D;
        for (long i = 0; i < n; i++) {
            real *to = y + (t * n + i) * D;
#pragma omp simd
            for (long j = 0; j < D; j++) to[j] = factor * from[j];
        }
    }
}

VECTOR_INLINE void read_of(long n, long D, const real *c, const real *restrict x, real *restrict y) {
    real read[STREAMS_MAX];
    for (long i = 0; i < n; i++) read[i] = c[i];
#pragma omp simd
    for (long j = 0; j < D; j++) {
        real sum = 0;
        for (long i = 0; i < n; i++) sum += read[i] * x[i * D + j];
        y[j] = sum;
    }
}

static void streams_read(long T, long n, long D, const real *c, long ldc, const real *x, real *y) {
    EACH_TOKEN(t) WITH_STREAMS(read_of, D, c + t * ldc, x + t * n * D, y + t * D);
}

static void streams_read_back(long T, long n, long D, const real *c, long ldc, const real *x, const real *dy,
                              real *dx, real *dc) {
    EACH_TOKEN(t) {
        const real *d = dy + t * D;
        for (long i = 0; i < n; i++) {
            const real *from = x + (t * n + i) * D, read = c[t * ldc + i];
            real *to = dx + (t * n + i) * D, sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long j = 0; j < D; j++) {
                sum += d[j] * from[j];
                to[j] += read * d[j];
            }
            dc[t * n * (n + 2) + i] = sum;
        }
    }
}

/* The numbers c of writing and mixing. With unit 1 a stream's mixing is of differences from it, with 0 of the
 * streams themselves. */
VECTOR_INLINE void mix_of(long n, long D, real unit, const real *c, const real *restrict x,
                          const real *restrict f, real *restrict y) {
    for (long o = 0; o < n; o++) {
        real write = c[o], mixing[STREAMS_MAX];
        for (long i = 0; i < n; i++) mixing[i] = c[n + o * n + i];
#pragma omp simd
        for (long j = 0; j < D; j++) {
            real from = unit * x[o * D + j], sum = from;
            for (long i = 0; i < n; i++) sum += mixing[i] * (x[i * D + j] - from);
            y[o * D + j] = sum + write * f[j];
        }
    }
}

static void streams_mix(long T, long n, long D, bool unit, const real *c, long ldc, const real *x,
                        const real *f, real *y) {
    EACH_TOKEN(t) WITH_STREAMS(mix_of, D, unit, c + t * ldc + n, x + t * n * D, f + t * D, y + t * n * D);
}

/* The gradients of writing and mixing, from the token's g [n, D]. */
static inline void numbers_back(long n, long D, real unit, const real *x, const real *f, const real *g,
                                real *dwrite, real *dmixing) {
    for (long o = 0; o < n; o++) {
        const real *d = g + o * D, *own = x + o * D;
        real written = 0;
#pragma omp simd reduction(+ : written)
        for (long j = 0; j < D; j++) written += d[j] * f[j];
        dwrite[o] = written;
        for (long i = 0; i < n; i++) {
            const real *other = x + i * D;
            real mixed = 0;
#pragma omp simd reduction(+ : mixed)
            for (long j = 0; j < D; j++) mixed += d[j] * (other[j] - unit * own[j]);
            dmixing[o * n + i] = mixed;
        }
    }
}

/* A column's gradients of all streams are read before one is written. */
VECTOR_INLINE void mix_back_of(long n, long D, real unit, const real *c, real *restrict g,
                               real *restrict df) {
    real write[STREAMS_MAX], back[STREAMS_MAX * STREAMS_MAX];
    for (long o = 0; o < n; o++) write[o] = c[o];
    streams_transpose(n, unit, c + n, back);
#pragma omp simd
    for (long j = 0; j < D; j++) {
        real from[STREAMS_MAX], added = 0;
        for (long o = 0; o < n; o++) {
            from[o] = g[o * D + j];
            added += write[o] * from[o];
        }
        df[j] = added;
        for (long i = 0; i < n; i++) {
            real sum = 0;
            for (long o = 0; o < n; o++) sum += back[i * n + o] * from[o];
            g[i * D + j] = sum;
        }
    }
}

static void streams_mix_back(long T, long n, long D, bool unit, const real *c, long ldc, const real *x,
                             const real *f, real *g, real *df, real *dc) {
    EACH_TOKEN(t) {
        real *to = g + t * n * D, *dwrite = dc + t * n * (n + 2) + n;
        numbers_back(n, D, unit, x + t * n * D, f + t * D, to, dwrite, dwrite + n);
        WITH_STREAMS(mix_back_of, D, unit, c + t * ldc + n, to, df + t * D);
    }
}

/* As many tokens are worth threads here: each has some hundred exponentials and quotients. */
enum { PARALLEL_TOKENS = 64 };

static void stream_weights(long T, long n, long first, bool stochastic, const real *weight, const real *scale,
                           const real *u, const real *rstd, real *c) {
    const struct streams_numbers a = {n, first, stochastic, weight, scale, u, rstd};
#pragma omp parallel for schedule(static) if (T >= PARALLEL_TOKENS)
    for (long t = 0; t < T; t++) streams_weigh(&a, t, c);
}

static void stream_weights_back(long T, long n, bool stochastic, const real *weight, const real *scale,
                                const real *u, const real *rstd, real *dc, real *du, real *drstd,
                                real *dscale) {
    const struct streams_numbers a = {n, 0, stochastic, weight, scale, u, rstd};
#pragma omp parallel for schedule(static) if (T >= PARALLEL_TOKENS)
    for (long t = 0; t < T; t++) streams_weigh_back(&a, t, dc, du, drstd, dscale);
}

void ISA_NAME(cpu_streams)(struct ops *ops) {
    ops->streams_sum = streams_sum;
    ops->streams_spread = streams_spread;
    ops->streams_read = streams_read;
    ops->streams_read_back = streams_read_back;
    ops->streams_mix = streams_mix;
    ops->streams_mix_back = streams_mix_back;
    ops->stream_weights = stream_weights;
    ops->stream_weights_back = stream_weights_back;
}
