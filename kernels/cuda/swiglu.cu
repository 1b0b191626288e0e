/* CUDA backend: the MLP's gate, h = silu(g) ⊙ u, in one pass each way. */
#include <math.h>

#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

static __device__ inline real sigmoid(real x) {
    return 1 / (1 + expf(-x));
}

/* silu(g)·u from s = σ(g): in the backward pass the same bits again. */
static __device__ inline real gated(real g, real s, real u) {
    return g * s * u;
}

static __global__ void swiglu_kernel(long T, long F, const real *gu, real *h, bool aligned) {
    long at = tile_column(), left = F - at;
    if (at >= F) return;
    EACH_TILE_ROW(t, T) {
        const real *row = gu + t * 2 * F + at;
        quad g = load_quad(row, left, aligned), u = load_quad(row + F, left, aligned);
        for (int i = 0; i < 4; i++) g.v[i] = gated(g.v[i], sigmoid(g.v[i]), u.v[i]);
        store_quad(h + t * F + at, left, aligned, g);
    }
}

static __global__ void swiglu_back_kernel(long T, long F, const real *gu, const real *dh, real *dgu, real *h,
                                          bool aligned) {
    long at = tile_column(), left = F - at;
    if (at >= F) return;
    EACH_TILE_ROW(t, T) {
        long row = t * 2 * F + at, to = t * F + at;
        quad g = load_quad(gu + row, left, aligned), u = load_quad(gu + row + F, left, aligned);
        quad d = load_quad(dh + to, left, aligned), again;
        for (int i = 0; i < 4; i++) {
            real gi = g.v[i], ui = u.v[i], s = sigmoid(gi);
            again.v[i] = gated(gi, s, ui);
            g.v[i] = d.v[i] * ui * (s * (1 + gi * (1 - s)));
            u.v[i] = d.v[i] * (gi * s);
        }
        store_quad(dgu + row, left, aligned, g);
        store_quad(dgu + row + F, left, aligned, u);
        if (h) store_quad(h + to, left, aligned, again);
    }
}

static void swiglu(long T, long F, const real *gu, real *h) {
    bool aligned = on_quads(gu, F) && on_quads(h, F);
    LAUNCH(swiglu_kernel, tile_grid(T, F), tile_block(F), 0, T, F, gu, h, aligned);
}

static void swiglu_back(long T, long F, const real *gu, const real *dh, real *dgu, real *h) {
    bool aligned = on_quads(gu, F) && on_quads(dh, F) && on_quads(dgu, F) && on_quads(h, F);
    LAUNCH(swiglu_back_kernel, tile_grid(T, F), tile_block(F), 0, T, F, gu, dh, dgu, h, aligned);
}

extern "C" void cuda_swiglu(struct ops *ops) {
    ops->swiglu = swiglu;
    ops->swiglu_back = swiglu_back;
}
