/* CPU operations bottleneck_gate, scale_connections and bottleneck_gate_back: the gates of all bottleneck
 * connections of a layer in loops over all n·Hd columns, with each connection's factor spread over its Hd
 * columns. */
#include <stddef.h>

#include "kernels/cpu/delta_log.h"
#include "kernels/cpu/delta_parts.h"
#include "kernels/cpu/delta_tile.h"

static void bottleneck_gate(long T, long n, long Hd, const real *bias, const real *p, const real *r,
                            const real *scale, const real *weight, real *g, real *v) {
    long W = n * Hd;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long first = 0, columns; first < W; first += columns) {
            struct tile tile = tile_at(first, W, Hd);
            real of_connection[TILE], factor[TILE];
            for (long k = 0, i = tile.group; k < tile.groups; k++, i++)
                of_connection[k] = scale[i] * (r ? r[i * T + t] : 1) * (weight ? weight[t * n + i] : 1);
            tile_spread(&tile, of_connection, factor);
            columns = tile.columns;
            const real *pj = p + t * W + first, *b = bias + first;
            real *gj = g + t * W + first, *vj = v + t * W + first;
#pragma omp simd
            for (long j = 0; j < columns; j++) {
                gj[j] = vector_sigmoid(gj[j] + b[j]);
                vj[j] = factor[j] * pj[j] * gj[j];
            }
        }
}

static void scale_connections(long T, long n, long Hd, const real *weight, const real *x, real *y) {
    long W = n * Hd;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long first = 0, columns; first < W; first += columns) {
            struct tile tile = tile_at(first, W, Hd);
            real factor[TILE];
            const real *xj = x + t * W + first;
            real *yj = y + t * W + first;
            tile_spread(&tile, weight + t * n + tile.group, factor);
            columns = tile.columns;
#pragma omp simd
            for (long j = 0; j < columns; j++) yj[j] = factor[j] * xj[j];
        }
}

/* The factors of one tile's columns, and what is left to sum over each connection. */
struct back_tile {
    real weight[TILE];  /* of the connection */
    real factor[TILE];  /* r·scale of the connection */
    real dweight[TILE]; /* dv·u, u = factor·p·g */
    real dr[TILE];      /* du·p·g */
};

/* The gradient of u is du = weight·dv + extra. has_extra and has_entropy are constants where it is called. */
VECTOR_INLINE void backward_columns(long columns, struct back_tile *b, const real *p, bool has_extra,
                                    const real *extra, bool has_entropy, real entropy, real *g, real *dv) {
#pragma omp simd
    for (long j = 0; j < columns; j++) {
        real gate = g[j], gated = p[j] * gate, d = dv[j];
        real du = b->weight[j] * d + (has_extra ? extra[j] : 0);
        real dgate = b->factor[j] * p[j] * du + (has_entropy ? entropy * gate_entropy_slope(gate) : 0);
        b->dweight[j] = d * b->factor[j] * gated;
        b->dr[j] = du * gated;
        dv[j] = b->factor[j] * gate * du;
        g[j] = dgate * gate * (1 - gate);
    }
}

static void bottleneck_gate_back(long T, long n, long Hd, const real *p, const real *r, const real *scale,
                                 const real *weight, const real *extra, double entropy, const real *counts,
                                 real *g, real *dv, real *dweight, real *dr) {
    long W = n * Hd;
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long first = 0, columns; first < W; first += columns) {
            struct tile tile = tile_at(first, W, Hd);
            struct back_tile b;
            real of_connection[TILE], h = (counts ? counts[t] : 1) * (real)entropy;
            long at = t * W + first;
            columns = tile.columns;
            for (long k = 0, i = tile.group; k < tile.groups; k++, i++)
                of_connection[k] = scale[i] * (r ? r[i * T + t] : 1);
            tile_spread(&tile, of_connection, b.factor);
            for (long k = 0; k < tile.groups; k++)
                of_connection[k] = weight ? weight[t * n + tile.group + k] : 1;
            tile_spread(&tile, of_connection, b.weight);
            if (entropy != 0 && extra)
                backward_columns(columns, &b, p + at, true, extra + at, true, h, g + at, dv + at);
            else if (entropy != 0)
                backward_columns(columns, &b, p + at, false, NULL, true, h, g + at, dv + at);
            else if (extra)
                backward_columns(columns, &b, p + at, true, extra + at, false, 0, g + at, dv + at);
            else
                backward_columns(columns, &b, p + at, false, NULL, false, 0, g + at, dv + at);
            tile_sums(&tile, b.dweight, of_connection);
            bool starts = first % Hd == 0; /* else an earlier tile holds the connection's first columns */
            for (long k = 0; k < tile.groups; k++) {
                real *d = &dweight[t * n + tile.group + k];
                *d = (starts ? 0 : *d) + of_connection[k];
            }
            if (!dr) continue;
            tile_sums(&tile, b.dr, of_connection);
            for (long k = 0, i = tile.group; k < tile.groups; k++, i++)
                dr[i * T + t] = (starts ? 0 : dr[i * T + t]) + scale[i] * of_connection[k];
        }
}

void ISA_NAME(cpu_delta_bottleneck)(struct ops *ops) {
    ops->bottleneck_gate = bottleneck_gate;
    ops->scale_connections = scale_connections;
    ops->bottleneck_gate_back = bottleneck_gate_back;
}
