/* CUDA backend: dropout. A thread has four columns of a row, whose key it computes for them. */
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

static __global__ void dropout_kernel(long T, long W, struct mask mask, uint32_t limit, real scale,
                                      const real *x, long ldx, real *y, long ldy, bool aligned) {
    long at = tile_column(), left = W - at;
    if (at >= W) return;
    EACH_TILE_ROW(t, T) {
        uint64_t key = mask_row(mask.site, mask.head, mask.row + (uint64_t)t);
        quad q = load_quad(x + t * ldx + at, left, aligned);
        for (int i = 0; i < 4; i++) {
            bool kept = mask_bits(key, (uint32_t)(mask.column + (uint64_t)(at + i))) >= limit;
            q.v[i] = kept ? q.v[i] * scale : 0;
        }
        store_quad(y + t * ldy + at, left, aligned, q);
    }
}

static void dropout(long T, long W, const struct mask *mask, const real *x, long ldx, real *y, long ldy) {
    bool aligned = on_quads(x, ldx) && on_quads(y, ldy);
    LAUNCH(dropout_kernel, tile_grid(T, W), tile_block(W), 0, T, W, *mask, mask_limit(mask->p),
           (real)(1 / (1 - mask->p)), x, ldx, y, ldy, aligned);
}

extern "C" void cuda_dropout(struct ops *ops) {
    ops->dropout = dropout;
}
