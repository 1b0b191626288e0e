/* CUDA operations of the gates that work on single columns: the gate MLP's activation and the sigmoid gate,
 * with their backward passes, each one pass over memory. */
#include "kernels/cuda/delta_gate.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* By just this product wherever silu is formed, so that its bits are the same. */
static __device__ inline real silu_of(real x) {
    return x * sigmoid(x);
}

/* 12 bytes an element. */
static __global__ void bias_silu_kernel(long T, long W, const real *__restrict__ bias, real *__restrict__ x,
                                        real *__restrict__ h, bool aligned) {
    long column = tile_column(), left = W - column;
    if (left <= 0) return;
    quad b = load_quad(bias + column, left, aligned);
    EACH_TILE_ROW(row, T) {
        long at = row * W + column;
        quad a = load_quad(x + at, left, aligned), y;
        for (int i = 0; i < 4; i++) {
            a.v[i] += b.v[i];
            y.v[i] = silu_of(a.v[i]);
        }
        store_quad(x + at, left, aligned, a);
        store_quad(h + at, left, aligned, y);
    }
}

static void bias_silu(long T, long W, const real *bias, real *x, real *h) {
    LAUNCH(bias_silu_kernel, tile_grid(T, W), tile_block(W), 0, T, W, bias, x, h,
           on_quads(bias, W) && on_quads(x, W) && on_quads(h, W));
}

/* 8 bytes an element. */
static __global__ void silu_kernel(long n, const real *__restrict__ x, real *__restrict__ h, bool aligned) {
    EACH_QUAD(at, n) {
        quad a = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++) a.v[i] = silu_of(a.v[i]);
        store_quad(h + at, n - at, aligned, a);
    }
}

static void silu(long n, const real *x, real *h) {
    LAUNCH(silu_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, h, on_quads(x, 0) && on_quads(h, 0));
}

/* 12 bytes an element; dx may be dh. */
static __global__ void silu_back_kernel(long n, const real *__restrict__ x, const real *dh, real *dx,
                                        bool aligned) {
    EACH_QUAD(at, n) {
        quad a = load_quad(x + at, n - at, aligned), d = load_quad(dh + at, n - at, aligned);
        for (int i = 0; i < 4; i++) {
            real g = sigmoid(a.v[i]);
            d.v[i] *= g * (1 + a.v[i] * (1 - g));
        }
        store_quad(dx + at, n - at, aligned, d);
    }
}

static void silu_back(long n, const real *x, const real *dh, real *dx) {
    LAUNCH(silu_back_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, dh, dx,
           on_quads(x, 0) && on_quads(dh, 0) && on_quads(dx, 0));
}

/* 8 bytes an element. */
static __global__ void sigmoid_kernel(long T, long W, real scale, const real *__restrict__ r,
                                      const real *__restrict__ x, real *__restrict__ g, long ld,
                                      bool aligned) {
    long column = tile_column(), left = W - column;
    if (left <= 0) return;
    EACH_TILE_ROW(row, T) {
        real factor = scale * (r ? r[row] : 1);
        quad a = load_quad(x + row * ld + column, left, aligned);
        for (int i = 0; i < 4; i++) a.v[i] = sigmoid(factor * a.v[i]);
        store_quad(g + row * ld + column, left, aligned, a);
    }
}

static void sigmoid_gate(long T, long W, double scale, const real *r, const real *x, real *g, long ld) {
    LAUNCH(sigmoid_kernel, tile_grid(T, W), tile_block(W), 0, T, W, (real)scale, r, x, g, ld,
           on_quads(x, ld) && on_quads(g, ld));
}

/* 16 bytes an element: dg becomes the gradient of x, whose product with x is summed. */
static __global__ void __launch_bounds__(MAX_TEAM)
    sigmoid_back_kernel(long T, long W, real scale, const real *__restrict__ r, const real *__restrict__ x,
                        const real *__restrict__ g, long ld, real entropy, const real *__restrict__ counts,
                        real *__restrict__ dg, long lddg, real *__restrict__ dr, bool aligned) {
    EACH_TEAM_ROW(row, T) {
        real factor = scale * (r ? r[row] : 1), sum = 0, *to = dg + row * lddg,
             slope = entropy * (counts ? counts[row] : 1);
        EACH_TEAM_QUAD(at, W) {
            long left = W - at;
            quad a = load_quad(x + row * ld + at, left, aligned),
                 gate = load_quad(g + row * ld + at, left, aligned);
            quad d = load_quad(to + at, left, aligned);
            for (int i = 0; i < 4; i++) {
                if (slope != 0) d.v[i] += slope * gate_entropy_slope(gate.v[i]);
                real dlogit = d.v[i] * gate.v[i] * (1 - gate.v[i]);
                sum += dlogit * a.v[i];
                d.v[i] = factor * dlogit;
            }
            store_quad(to + at, left, aligned, d);
        }
        if (!r) continue;
        sum = team_sum(sum);
        if (threadIdx.x == 0) dr[row] += scale * sum;
    }
}

static void sigmoid_gate_back(long T, long W, double scale, const real *r, const real *x, const real *g,
                              long ld, double entropy, const real *counts, real *dg, long lddg, real *dr) {
    LAUNCH(sigmoid_back_kernel, team_grid(T, W), team_block(W), 0, T, W, (real)scale, r, x, g, ld,
           (real)entropy, counts, dg, lddg, dr, on_quads(x, ld) && on_quads(g, ld) && on_quads(dg, lddg));
}

void cuda_delta_gates(struct ops *ops) {
    ops->bias_silu = bias_silu;
    ops->silu = silu;
    ops->silu_back = silu_back;
    ops->sigmoid_gate = sigmoid_gate;
    ops->sigmoid_gate_back = sigmoid_gate_back;
    cuda_delta_softmax(ops);
}
