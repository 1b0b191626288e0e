/* CPU operations gated_delta and gated_delta_back: contributions that gate the delta itself (kinds `full` and
 * `adaptive`), in one pass over t, s and out or dout. */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/delta_parts.h"
#include "kernels/cpu/delta_tile.h"
#include "kernels/cpu/vector_math.h"

/* The gate of each column of a tile: the gates themselves where there is one a column, else spread into
 * `buffer`. */
static inline const real *gate_columns(const struct tile *tile, bool one_each, const real *gate,
                                       real *buffer) {
    if (one_each) return gate + tile->first;
    tile_spread(tile, gate + tile->group, buffer);
    return buffer;
}

/* out += or = weight·c, c = factor·(t − s)⊙gate; returns Σ c². `add` is a constant where it is called. */
VECTOR_INLINE real forward_columns(long columns, bool add, real factor, real weight, const real *t,
                                   const real *s, const real *gate, real *out) {
    real squares = 0;
#pragma omp simd reduction(+ : squares)
    for (long j = 0; j < columns; j++) {
        real c = factor * (t[j] - s[j]) * gate[j];
        out[j] = (add ? out[j] : 0) + weight * c;
        squares += c * c;
    }
    return squares;
}

static void gated_delta(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                        const real *r, double scale, const real *weight, long ldw, bool add, real *out,
                        long ldo, real *rms) {
#pragma omp parallel for schedule(static) if (T * D >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        real factor = (real)(scale * (r ? r[i] : 1)), w = weight ? weight[i * ldw] : 1, buffer[TILE];
        double squares = 0;
        for (long first = 0, columns; first < D; first += columns) {
            struct tile tile = tile_at(first, D, D / G);
            const real *g = gate_columns(&tile, G == D, gate + i * ldg, buffer);
            const real *tj = t + i * D + first, *sj = s + i * D + first;
            real *o = out + i * ldo + first;
            columns = tile.columns;
            squares += add ? forward_columns(columns, true, factor, w, tj, sj, g, o)
                           : forward_columns(columns, false, factor, w, tj, sj, g, o);
        }
        if (rms) rms[i] = (real)sqrt(squares / (double)D + 1e-12);
    }
}

/* What is constant along a row of the backward pass. */
struct row {
    real factor; /* r·scale */
    real weight;
    real k; /* sparsity/(D·rms): the gradient of sparsity is k·c */
};

/* With c = factor·δ⊙gate and dc = weight·dout + k·c: dd = factor·dc⊙gate and dg = factor·dc⊙δ; adds Σ dout·c
 * and Σ dc·δ·gate to sums. */
VECTOR_INLINE void backward_columns(long columns, struct row row, const real *t, const real *s,
                                    const real *gate, const real *dout, real *restrict dd, real *restrict dg,
                                    double sums[2]) {
    real sum_weight = 0, sum_row = 0;
#pragma omp simd reduction(+ : sum_weight, sum_row)
    for (long j = 0; j < columns; j++) {
        real delta = t[j] - s[j], gated = delta * gate[j], c = row.factor * gated;
        real dc = row.weight * dout[j] + row.k * c;
        sum_weight += dout[j] * c;
        sum_row += dc * gated;
        dd[j] = row.factor * dc * gate[j];
        dg[j] = row.factor * dc * delta;
    }
    sums[0] += sum_weight;
    sums[1] += sum_row;
}

static void gated_delta_back(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                             const real *r, double scale, const real *weight, long ldw, const real *dout,
                             long ldo, const real *rms, double sparsity, real *dweight, long n, real *dgate,
                             real *dd, real *dr) {
#pragma omp parallel for schedule(static) if (T * D >= PARALLEL_WORK)
    for (long i = 0; i < T; i++) {
        struct row row = {(real)(scale * (r ? r[i] : 1)), weight ? weight[i * ldw] : 1,
                          rms && rms[i] != 0 ? (real)(sparsity / ((double)D * rms[i])) : 0};
        real buffer[TILE], dg[TILE], group_sum[TILE];
        double sums[2] = {0};
        for (long first = 0, columns; first < D; first += columns) {
            struct tile tile = tile_at(first, D, D / G);
            const real *g = gate_columns(&tile, G == D, gate + i * ldg, buffer);
            long at = i * D + first;
            columns = tile.columns;
            backward_columns(columns, row, t + at, s + at, g, dout + i * ldo + first, dd + at,
                             G == D ? dgate + i * G + first : dg, sums);
            if (G == D) continue; /* each gate has one column: its gradient is there */
            tile_sums(&tile, dg, group_sum);
            bool starts = first % (D / G) == 0; /* else an earlier tile holds the group's first columns */
            for (long k = 0; k < tile.groups; k++) {
                real *d = &dgate[i * G + tile.group + k];
                *d = (starts ? 0 : *d) + group_sum[k];
            }
        }
        dweight[i * n] = (real)sums[0];
        if (r) dr[i] = (real)(scale * sums[1]);
    }
}

void ISA_NAME(cpu_delta_gated)(struct ops *ops) {
    ops->gated_delta = gated_delta;
    ops->gated_delta_back = gated_delta_back;
}
