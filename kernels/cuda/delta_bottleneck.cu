/* CUDA operations bottleneck_gate, scale_connections and bottleneck_gate_back: the gates of all bottleneck
 * connections of a layer at once. A matrix [T, n·Hd] is also one of T·n rows of one connection and token
 * each, Hd wide: what a connection's columns share is then a row's, and so are their sums. */
#include "kernels/cuda/delta_gate.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* Connections' scales, by value: the caller's list need not outlive the call. */
struct scales {
    real of[OPS_CONNECTIONS];
};

static struct scales take_scales(long n, const real *scale) {
    struct scales scales = {};
    for (long i = 0; i < n; i++) scales.of[i] = scale[i];
    return scales;
}

/* Row t·n + i of token t and connection i. */
struct place {
    long t;
    unsigned i;
};

static __device__ inline struct place place_of(long row, long n) {
    unsigned t = (unsigned)row / (unsigned)n;
    return {t, (unsigned)row - t * (unsigned)n};
}

/* 16 bytes an element. */
static __global__ void bottleneck_kernel(long T, long n, long Hd, const real *__restrict__ bias,
                                         const real *__restrict__ p, const real *__restrict__ r,
                                         struct scales scale, const real *__restrict__ weight,
                                         real *__restrict__ g, real *__restrict__ v, bool aligned) {
    long column = tile_column(), left = Hd - column;
    if (left <= 0) return;
    EACH_TILE_ROW(row, T * n) {
        struct place here = place_of(row, n);
        long at = row * Hd + column;
        real factor = scale.of[here.i] * (r ? r[here.i * T + here.t] : 1) * (weight ? weight[row] : 1);
        quad gate = load_quad(g + at, left, aligned),
             b = load_quad(bias + here.i * Hd + column, left, aligned);
        quad u = load_quad(p + at, left, aligned);
        for (int k = 0; k < 4; k++) {
            gate.v[k] = sigmoid(gate.v[k] + b.v[k]);
            u.v[k] *= factor * gate.v[k];
        }
        store_quad(g + at, left, aligned, gate);
        store_quad(v + at, left, aligned, u);
    }
}

static void bottleneck_gate(long T, long n, long Hd, const real *bias, const real *p, const real *r,
                            const real *scale, const real *weight, real *g, real *v) {
    bool aligned = on_quads(bias, Hd) && on_quads(p, Hd) && on_quads(g, Hd) && on_quads(v, Hd);
    LAUNCH(bottleneck_kernel, tile_grid(T * n, Hd), tile_block(Hd), 0, T, n, Hd, bias, p, r,
           take_scales(n, scale), weight, g, v, aligned);
}

/* 8 bytes an element; y may be x. */
static __global__ void scale_kernel(long rows, long Hd, const real *__restrict__ weight,
                                    const real *x, real *y, bool aligned) {
    long column = tile_column(), left = Hd - column;
    if (left <= 0) return;
    EACH_TILE_ROW(row, rows) {
        quad a = load_quad(x + row * Hd + column, left, aligned);
        for (int k = 0; k < 4; k++) a.v[k] *= weight[row];
        store_quad(y + row * Hd + column, left, aligned, a);
    }
}

static void scale_connections(long T, long n, long Hd, const real *weight, const real *x, real *y) {
    LAUNCH(scale_kernel, tile_grid(T * n, Hd), tile_block(Hd), 0, T * n, Hd, weight, x, y,
           on_quads(x, Hd) && on_quads(y, Hd));
}

/* 20 bytes an element, with `extra` 24. The gradient of u = factor·p·g is du = weight·dv + extra. */
static __global__ void __launch_bounds__(MAX_TEAM)
    bottleneck_back_kernel(long T, long n, long Hd, const real *__restrict__ p, const real *__restrict__ r,
                           struct scales scale, const real *__restrict__ weight,
                           const real *__restrict__ extra, real entropy, const real *__restrict__ counts,
                           real *__restrict__ g, real *__restrict__ dv, real *__restrict__ dweight,
                           real *__restrict__ dr, bool aligned) {
    EACH_TEAM_ROW(row, T * n) {
        struct place here = place_of(row, n);
        real factor = scale.of[here.i] * (r ? r[here.i * T + here.t] : 1), w = weight ? weight[row] : 1;
        real sum_weight = 0, sum_row = 0, slope = entropy * (counts ? counts[here.t] : 1);
        EACH_TEAM_QUAD(column, Hd) {
            long at = row * Hd + column, left = Hd - column;
            quad gate = load_quad(g + at, left, aligned), u = load_quad(p + at, left, aligned);
            quad d = load_quad(dv + at, left, aligned), more = {};
            if (extra) more = load_quad(extra + at, left, aligned);
            for (int k = 0; k < 4; k++) {
                real x = gate.v[k], gated = u.v[k] * x, du = w * d.v[k] + more.v[k];
                real dgate = factor * u.v[k] * du;
                if (slope != 0) dgate += slope * gate_entropy_slope(x);
                sum_weight += d.v[k] * gated;
                sum_row += du * gated;
                d.v[k] = factor * x * du;
                gate.v[k] = dgate * x * (1 - x);
            }
            store_quad(dv + at, left, aligned, d);
            store_quad(g + at, left, aligned, gate);
        }
        sum_weight = team_sum(sum_weight);
        if (dr) sum_row = team_sum(sum_row);
        if (threadIdx.x > 0) continue;
        dweight[row] = factor * sum_weight;
        if (dr) dr[here.i * T + here.t] = scale.of[here.i] * sum_row;
    }
}

static void bottleneck_gate_back(long T, long n, long Hd, const real *p, const real *r, const real *scale,
                                 const real *weight, const real *extra, double entropy,
                                 const real *counts, real *g, real *dv, real *dweight, real *dr) {
    bool aligned = on_quads(p, Hd) && on_quads(extra, Hd) && on_quads(g, Hd) && on_quads(dv, Hd);
    LAUNCH(bottleneck_back_kernel, team_grid(T * n, Hd), team_block(Hd), 0, T, n, Hd, p, r,
           take_scales(n, scale), weight, extra, (real)entropy, counts, g, dv, dweight, dr, aligned);
}

void cuda_delta_bottleneck(struct ops *ops) {
    ops->bottleneck_gate = bottleneck_gate;
    ops->scale_connections = scale_connections;
    ops->bottleneck_gate_back = bottleneck_gate_back;
}
