/* CUDA operations of several residual streams: elements in tiles, sums a warp a token, a token's numbers a
 * thread. What goes over columns knows how many streams there are when it is compiled. */
#include "kernels/base/streams.h"
#include "kernels/cuda/delta_mixing.h"
#include "kernels/cuda/parts.h"

/* n streams of T tokens. */
struct streams {
    long T, D;
    const real *c; /* the numbers of a token, ldc apart */
    long ldc;
    const real *x;
    bool aligned;
};

/* The quad at column `at` of stream i of token t. */
template <int n> static __device__ inline long place(const struct streams &s, long t, int i, long at) {
    return (t * n + i) * s.D + at;
}

#define WITH_STREAMS(kernel, grid, block, ...)                                                               \
    do {                                                                                                     \
        if (n == 2)                                                                                          \
            LAUNCH(kernel<2>, grid, block, 0, __VA_ARGS__);                                                  \
        else if (n == 4)                                                                                     \
            LAUNCH(kernel<4>, grid, block, 0, __VA_ARGS__);                                                  \
        else                                                                                                 \
            LAUNCH(kernel<8>, grid, block, 0, __VA_ARGS__);                                                  \
    } while (0)

/* Of `count` streams from number `first` on, weighted by the token's numbers where there are some. By halves,
 * so that the mean of streams that are the same is each of them to the bit. */
template <int n, int count>
static __device__ inline quad sum_of(const struct streams &s, long t, int first, long at) {
    long left = s.D - at;
    if constexpr (count == 1) {
        quad sum = load_quad(s.x + place<n>(s, t, first, at), left, s.aligned);
        real weight = s.c ? s.c[t * s.ldc + first] : 1;
        for (int j = 0; j < 4; j++) sum.v[j] *= weight;
        return sum;
    } else {
        quad sum = sum_of<n, count / 2>(s, t, first, at),
             other = sum_of<n, count / 2>(s, t, first + count / 2, at);
        for (int j = 0; j < 4; j++) sum.v[j] += other.v[j];
        return sum;
    }
}

/* Times `factor`: 4·(n + 1)·D bytes a token. */
template <int n> static __global__ void read_kernel(struct streams s, real factor, real *y) {
    long at = tile_column(), left = s.D - at;
    if (at >= s.D) return;
    EACH_TILE_ROW(t, s.T) {
        quad sum = sum_of<n, n>(s, t, 0, at);
        for (int j = 0; j < 4; j++) sum.v[j] *= factor;
        store_quad(y + t * s.D + at, left, s.aligned, sum);
    }
}

static void streams_read(long T, long n, long D, const real *c, long ldc, const real *x, real *y) {
    struct streams s = {T, D, c, ldc, x, on_quads(x, D) && on_quads(y, D)};
    WITH_STREAMS(read_kernel, tile_grid(T, D), tile_block(D), s, (real)1, y);
}

static void streams_sum(long T, long n, long D, real factor, const real *x, real *y) {
    struct streams s = {T, D, NULL, 0, x, on_quads(x, D) && on_quads(y, D)};
    WITH_STREAMS(read_kernel, tile_grid(T, D), tile_block(D), s, factor, y);
}

/* x is one stream. */
template <int n> static __global__ void spread_kernel(struct streams s, real factor, real *y) {
    long at = tile_column(), left = s.D - at;
    if (at >= s.D) return;
    EACH_TILE_ROW(t, s.T) {
        quad x = load_quad(s.x + t * s.D + at, left, s.aligned);
        for (int j = 0; j < 4; j++) x.v[j] *= factor;
        for (int i = 0; i < n; i++) store_quad(y + place<n>(s, t, i, at), left, s.aligned, x);
    }
}

static void streams_spread(long T, long n, long D, real factor, const real *x, real *y) {
    struct streams s = {T, D, NULL, 0, x, on_quads(x, D) && on_quads(y, D)};
    WITH_STREAMS(spread_kernel, tile_grid(T, D), tile_block(D), s, factor, y);
}

/* Writes its warp's sum of each of `count` numbers. */
static __device__ inline void write_sums(int count, const real *sum, real *out) {
    for (int i = 0; i < count; i++) {
        real all = warp_sum(sum[i]);
        if (threadIdx.x == 0) out[i] = all;
    }
}

/* 4·(3·n + 1)·D bytes a token. */
template <int n>
static __global__ void read_back_kernel(struct streams s, const real *dy, real *dx, real *dc) {
    EACH_TEAM_ROW(t, s.T) {
        real sum[n] = {};
        EACH_TEAM_QUAD(at, s.D) {
            long left = s.D - at;
            quad d = load_quad(dy + t * s.D + at, left, s.aligned);
            for (int i = 0; i < n; i++) {
                real *to = dx + place<n>(s, t, i, at), read = s.c[t * s.ldc + i];
                quad x = load_quad(s.x + place<n>(s, t, i, at), left, s.aligned),
                     sofar = load_quad(to, left, s.aligned);
                for (int j = 0; j < 4; j++) {
                    sum[i] += d.v[j] * x.v[j];
                    sofar.v[j] += read * d.v[j];
                }
                store_quad(to, left, s.aligned, sofar);
            }
        }
        write_sums(n, sum, dc + t * n * (n + 2));
    }
}

static void streams_read_back(long T, long n, long D, const real *c, long ldc, const real *x, const real *dy,
                              real *dx, real *dc) {
    struct streams s = {T, D, c, ldc, x, on_quads(x, D) && on_quads(dy, D) && on_quads(dx, D)};
    WITH_STREAMS(read_back_kernel, warps_grid(T), warps_block(), s, dy, dx, dc);
}

/* 4·(2·n + 1)·D bytes a token. With unit 1 a stream's mixing is of differences from it, with 0 of the streams
 * themselves. */
template <int n> static __global__ void mix_kernel(struct streams s, real unit, const real *f, real *y) {
    long at = tile_column(), left = s.D - at;
    if (at >= s.D) return;
    EACH_TILE_ROW(t, s.T) {
        const real *write = s.c + t * s.ldc + n, *mixing = write + n;
        quad x[n], added = load_quad(f + t * s.D + at, left, s.aligned);
        for (int i = 0; i < n; i++) x[i] = load_quad(s.x + place<n>(s, t, i, at), left, s.aligned);
        for (int o = 0; o < n; o++) {
            quad y_o;
            for (int j = 0; j < 4; j++) {
                real from = unit * x[o].v[j], sum = from;
                for (int i = 0; i < n; i++) sum += mixing[o * n + i] * (x[i].v[j] - from);
                y_o.v[j] = sum + write[o] * added.v[j];
            }
            store_quad(y + place<n>(s, t, o, at), left, s.aligned, y_o);
        }
    }
}

static void streams_mix(long T, long n, long D, bool unit, const real *c, long ldc, const real *x,
                        const real *f, real *y) {
    struct streams s = {T, D, c, ldc, x, on_quads(x, D) && on_quads(f, D) && on_quads(y, D)};
    WITH_STREAMS(mix_kernel, tile_grid(T, D), tile_block(D), s, (real)unit, f, y);
}

/* 4·(3·n + 2)·D bytes a token. */
template <int n>
static __global__ void mix_back_kernel(struct streams s, real unit, const real *f, real *g, real *df,
                                       real *dc) {
    EACH_TEAM_ROW(t, s.T) {
        const real *write = s.c + t * s.ldc + n;
        real dwrite[n] = {}, dmixing[n * n] = {}, back[n * n];
        streams_transpose(n, unit, write + n, back);
        EACH_TEAM_QUAD(at, s.D) {
            long left = s.D - at;
            quad added = load_quad(f + t * s.D + at, left, s.aligned), dadded = {}, x[n], from[n];
            for (int i = 0; i < n; i++) {
                x[i] = load_quad(s.x + place<n>(s, t, i, at), left, s.aligned);
                from[i] = load_quad(g + place<n>(s, t, i, at), left, s.aligned);
            }
            for (int o = 0; o < n; o++)
                for (int j = 0; j < 4; j++) {
                    real d = from[o].v[j];
                    dadded.v[j] += write[o] * d;
                    dwrite[o] += d * added.v[j];
                    for (int i = 0; i < n; i++) dmixing[o * n + i] += d * (x[i].v[j] - unit * x[o].v[j]);
                }
            store_quad(df + t * s.D + at, left, s.aligned, dadded);
            for (int i = 0; i < n; i++) {
                quad sum = {};
                for (int o = 0; o < n; o++)
                    for (int j = 0; j < 4; j++) sum.v[j] += back[i * n + o] * from[o].v[j];
                store_quad(g + place<n>(s, t, i, at), left, s.aligned, sum);
            }
        }
        write_sums(n, dwrite, dc + t * n * (n + 2) + n);
        write_sums(n * n, dmixing, dc + t * n * (n + 2) + 2 * n);
    }
}

static void streams_mix_back(long T, long n, long D, bool unit, const real *c, long ldc, const real *x,
                             const real *f, real *g, real *df, real *dc) {
    struct streams s = {T,   D, c,
                        ldc, x, on_quads(x, D) && on_quads(f, D) && on_quads(g, D) && on_quads(df, D)};
    WITH_STREAMS(mix_back_kernel, warps_grid(T), warps_block(), s, (real)unit, f, g, df, dc);
}

/* ------------------------------------------------------------------------------------- a token's numbers */

enum { NUMBERS_BLOCK = 64 };

static __global__ void weights_kernel(long T, struct streams_numbers a, real *c) {
    long t = (long)blockIdx.x * NUMBERS_BLOCK + threadIdx.x;
    if (t < T) streams_weigh(&a, t, c);
}

static void stream_weights(long T, long n, long first, bool stochastic, const real *weight, const real *scale,
                           const real *u, const real *rstd, real *c) {
    struct streams_numbers a = {n, first, stochastic, weight, scale, u, rstd};
    LAUNCH(weights_kernel, (unsigned)ceil_div(T, NUMBERS_BLOCK), NUMBERS_BLOCK, 0, T, a, c);
}

static __global__ void weights_back_kernel(long T, struct streams_numbers a, real *dc, real *du, real *drstd,
                                           real *dscale) {
    long t = (long)blockIdx.x * NUMBERS_BLOCK + threadIdx.x;
    if (t < T) streams_weigh_back(&a, t, dc, du, drstd, dscale);
}

static void stream_weights_back(long T, long n, bool stochastic, const real *weight, const real *scale,
                                const real *u, const real *rstd, real *dc, real *du, real *drstd,
                                real *dscale) {
    struct streams_numbers a = {n, 0, stochastic, weight, scale, u, rstd};
    LAUNCH(weights_back_kernel, (unsigned)ceil_div(T, NUMBERS_BLOCK), NUMBERS_BLOCK, 0, T, a, dc, du, drstd,
           dscale);
}

extern "C" void cuda_streams(struct ops *ops) {
    ops->streams_sum = streams_sum;
    ops->streams_spread = streams_spread;
    ops->streams_read = streams_read;
    ops->streams_read_back = streams_read_back;
    ops->streams_mix = streams_mix;
    ops->streams_mix_back = streams_mix_back;
    ops->stream_weights = stream_weights;
    ops->stream_weights_back = stream_weights_back;
}
