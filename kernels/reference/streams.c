/* Reference operations of several residual streams (model.md 12, hyper). A token's rows lie one behind the
 * other: x [T, n, D]. */
#include "kernels/base/streams.h"
#include "kernels/reference/delta_parts.h"

static double dot(long n, const real *x, const real *y) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* Of x [n, D], its elements' column. By halves, so that the mean of streams that are the same is each of them
 * to the bit. */
static double column_sum(long n, long D, const real *x) {
    return n == 1 ? (double)x[0] : column_sum(n / 2, D, x) + column_sum(n / 2, D, x + n / 2 * D);
}

static void streams_sum(long T, long n, long D, real factor, const real *x, real *y) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++) y[t * D + j] = (real)(factor * column_sum(n, D, x + t * n * D + j));
}

static void streams_spread(long T, long n, long D, real factor, const real *x, real *y) {
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < D; j++) y[(t * n + i) * D + j] = factor * x[t * D + j];
}

static void streams_read(long T, long n, long D, const real *c, long ldc, const real *x, real *y) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++) {
            double sum = 0;
            for (long i = 0; i < n; i++) sum += (double)c[t * ldc + i] * x[(t * n + i) * D + j];
            y[t * D + j] = (real)sum;
        }
}

static void streams_read_back(long T, long n, long D, const real *c, long ldc, const real *x, const real *dy,
                              real *dx, real *dc) {
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++) {
            long at = (t * n + i) * D;
            dc[t * n * (n + 2) + i] = (real)dot(D, dy + t * D, x + at);
            for (long j = 0; j < D; j++) dx[at + j] += c[t * ldc + i] * dy[t * D + j];
        }
}

static void streams_mix(long T, long n, long D, bool unit, const real *c, long ldc, const real *x,
                        const real *f, real *y) {
    for (long t = 0; t < T; t++)
        for (long o = 0; o < n; o++)
            for (long j = 0; j < D; j++) {
                const real *write = c + t * ldc + n, *mixing = write + n + o * n, *of = x + t * n * D + j;
                double from = unit ? of[o * D] : 0, sum = from;
                for (long i = 0; i < n; i++) sum += mixing[i] * (of[i * D] - from);
                y[(t * n + o) * D + j] = (real)(sum + (double)write[o] * f[t * D + j]);
            }
}

/* The gradients of writing and mixing, from the token's g [n, D]. */
static void numbers_back(long n, long D, bool unit, const real *x, const real *f, const real *g, real *dwrite,
                         real *dmixing) {
    for (long o = 0; o < n; o++) {
        dwrite[o] = (real)dot(D, g + o * D, f);
        for (long i = 0; i < n; i++) {
            double sum = 0;
            for (long j = 0; j < D; j++)
                sum += (double)g[o * D + j] * ((double)x[i * D + j] - (unit ? x[o * D + j] : 0));
            dmixing[o * n + i] = (real)sum;
        }
    }
}

static void streams_mix_back(long T, long n, long D, bool unit, const real *c, long ldc, const real *x,
                             const real *f, real *g, real *df, real *dc) {
    for (long t = 0; t < T; t++) {
        const real *write = c + t * ldc + n, *mixing = write + n;
        real *dwrite = dc + t * n * (n + 2) + n, *of = g + t * n * D;
        numbers_back(n, D, unit, x + t * n * D, f + t * D, of, dwrite, dwrite + n);
        for (long j = 0; j < D; j++) {
            double added = 0, back[STREAMS_MAX] = {0};
            for (long o = 0; o < n; o++) {
                double rest = unit;
                added += (double)write[o] * of[o * D + j];
                for (long i = 0; i < n; i++) {
                    back[i] += (double)mixing[o * n + i] * of[o * D + j];
                    if (unit) rest -= mixing[o * n + i];
                }
                back[o] += rest * of[o * D + j];
            }
            df[t * D + j] = (real)added;
            for (long i = 0; i < n; i++) of[i * D + j] = (real)back[i];
        }
    }
}

static void stream_weights(long T, long n, long first, bool stochastic, const real *weight, const real *scale,
                           const real *u, const real *rstd, real *c) {
    const struct streams_numbers a = {n, first, stochastic, weight, scale, u, rstd};
    for (long t = 0; t < T; t++) streams_weigh(&a, t, c);
}

static void stream_weights_back(long T, long n, bool stochastic, const real *weight, const real *scale,
                                const real *u, const real *rstd, real *dc, real *du, real *drstd,
                                real *dscale) {
    const struct streams_numbers a = {n, 0, stochastic, weight, scale, u, rstd};
    for (long t = 0; t < T; t++) streams_weigh_back(&a, t, dc, du, drstd, dscale);
}

void reference_streams(struct ops *ops) {
    ops->streams_sum = streams_sum;
    ops->streams_spread = streams_spread;
    ops->streams_read = streams_read;
    ops->streams_read_back = streams_read_back;
    ops->streams_mix = streams_mix;
    ops->streams_mix_back = streams_mix_back;
    ops->stream_weights = stream_weights;
    ops->stream_weights_back = stream_weights_back;
}
