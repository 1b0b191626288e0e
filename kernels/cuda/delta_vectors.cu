/* CUDA operations that work on whole deltas t − s: differences and norms. Bound by memory, and each one pass
 * over it. */
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* 8 bytes an element, and 4 for each result. */
static __global__ void mean_kernel(long n, const real *__restrict__ t, const real *__restrict__ s,
                                   real *__restrict__ delta, real *__restrict__ mean, bool aligned) {
    EACH_QUAD(at, n) {
        quad a = load_quad(t + at, n - at, aligned), b = load_quad(s + at, n - at, aligned), d, m;
        for (int i = 0; i < 4; i++) {
            d.v[i] = a.v[i] - b.v[i];
            m.v[i] = (a.v[i] + b.v[i]) * (real)0.5;
        }
        if (delta) store_quad(delta + at, n - at, aligned, d);
        if (mean) store_quad(mean + at, n - at, aligned, m);
    }
}

static void delta_mean(long T, long D, const real *t, const real *s, real *delta, real *mean) {
    bool aligned = on_quads(t, 0) && on_quads(s, 0) && on_quads(delta, 0) && on_quads(mean, 0);
    if (delta || mean)
        LAUNCH(mean_kernel, vector_grid(T * D), VECTOR_BLOCK, 0, T * D, t, s, delta, mean, aligned);
}

/* ‖t − s‖² of a team's row. */
static __device__ real square_distance(long D, const real *t, const real *s, bool aligned) {
    real sum = 0;
    EACH_TEAM_QUAD(at, D) {
        quad a = load_quad(t + at, D - at, aligned), b = load_quad(s + at, D - at, aligned);
        for (int i = 0; i < 4; i++) sum += (a.v[i] - b.v[i]) * (a.v[i] - b.v[i]);
    }
    return team_sum(sum);
}

/* 8 bytes an element. */
static __global__ void inverse_norm_kernel(long T, long D, const real *__restrict__ t,
                                           const real *__restrict__ s, double eps, real *__restrict__ inv,
                                           bool aligned) {
    EACH_TEAM_ROW(row, T) {
        real square = square_distance(D, t + row * D, s + row * D, aligned);
        if (threadIdx.x > 0) continue;
        double norm = sqrt((double)square);
        inv[row] = (real)(1 / (norm < eps ? eps : norm)); /* a NaN stays one */
    }
}

static void delta_inverse_norm(long T, long D, const real *t, const real *s, double eps, real *inv) {
    LAUNCH(inverse_norm_kernel, team_grid(T, D), team_block(D), 0, T, D, t, s, eps, inv,
           on_quads(t, D) && on_quads(s, D));
}

/* 8 bytes an element. */
static __global__ void magnitude_kernel(long T, long D, const real *__restrict__ t,
                                        const real *__restrict__ s, const real *__restrict__ r, double eps,
                                        real *__restrict__ e, long lde, real *__restrict__ square,
                                        bool aligned) {
    EACH_TEAM_ROW(row, T) {
        double mean = (double)square_distance(D, t + row * D, s + row * D, aligned) / (double)D;
        if (threadIdx.x > 0) continue;
        double factor = r ? r[row] : 1;
        e[row * lde] = (real)sqrt(factor * factor * mean + eps);
        square[row] = (real)mean;
    }
}

static void delta_magnitude(long T, long D, const real *t, const real *s, const real *r, double eps, real *e,
                            long lde, real *square) {
    LAUNCH(magnitude_kernel, team_grid(T, D), team_block(D), 0, T, D, t, s, r, eps, e, lde, square,
           on_quads(t, D) && on_quads(s, D));
}

/* 16 bytes an element, 4 more with d and 8 more with k. */
static __global__ void spread_kernel(long T, long D, const real *__restrict__ d, const real *__restrict__ k,
                                     const real *__restrict__ t, const real *__restrict__ s,
                                     real *__restrict__ dt, real *__restrict__ ds, bool aligned) {
    long column = tile_column(), left = D - column;
    if (left <= 0) return;
    EACH_TILE_ROW(row, T) {
        long at = row * D + column;
        quad e = {}, a = load_quad(dt + at, left, aligned), b = load_quad(ds + at, left, aligned);
        if (d) e = load_quad(d + at, left, aligned);
        if (k) {
            quad x = load_quad(t + at, left, aligned), y = load_quad(s + at, left, aligned);
            for (int i = 0; i < 4; i++) e.v[i] += k[row] * (x.v[i] - y.v[i]);
        }
        for (int i = 0; i < 4; i++) {
            a.v[i] += e.v[i];
            b.v[i] -= e.v[i];
        }
        store_quad(dt + at, left, aligned, a);
        store_quad(ds + at, left, aligned, b);
    }
}

static void delta_spread(long T, long D, const real *d, const real *k, const real *t, const real *s, real *dt,
                         real *ds) {
    bool aligned = on_quads(d, D) && on_quads(dt, D) && on_quads(ds, D);
    if (k) aligned = aligned && on_quads(t, D) && on_quads(s, D);
    if (d || k) LAUNCH(spread_kernel, tile_grid(T, D), tile_block(D), 0, T, D, d, k, t, s, dt, ds, aligned);
}

void cuda_delta_vectors(struct ops *ops) {
    ops->delta_mean = delta_mean;
    ops->delta_inverse_norm = delta_inverse_norm;
    ops->delta_magnitude = delta_magnitude;
    ops->delta_spread = delta_spread;
}
