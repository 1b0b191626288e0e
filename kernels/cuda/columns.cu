/* CUDA backend: columns of rows copied and added, each row by its own factor or all by one, and dropped; and
 * the two steps of a root mean square over several ranks. */
#include <math.h>

#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

static __global__ void copy_kernel(long T, long W, const real *x, long ldx, real *y, long ldy, bool aligned) {
    long at = tile_column();
    if (at >= W) return;
    EACH_TILE_ROW(t, T) {
        store_quad(y + t * ldy + at, W - at, aligned, load_quad(x + t * ldx + at, W - at, aligned));
    }
}

/* y[t] += factor · x[t], with the row's own factor where there are some. */
static __global__ void add_kernel(long T, long W, const real *factors, real factor, const real *x, long ldx,
                                  real *y, long ldy, bool aligned) {
    long at = tile_column();
    if (at >= W) return;
    EACH_TILE_ROW(t, T) {
        quad from = load_quad(x + t * ldx + at, W - at, aligned);
        quad to = load_quad(y + t * ldy + at, W - at, aligned);
        real f = factors ? factors[t] : factor;
        for (int i = 0; i < 4; i++) to.v[i] += f * from.v[i];
        store_quad(y + t * ldy + at, W - at, aligned, to);
    }
}

static void copy_columns(long T, long W, const real *x, long ldx, real *y, long ldy) {
    bool aligned = on_quads(x, ldx) && on_quads(y, ldy);
    LAUNCH(copy_kernel, tile_grid(T, W), tile_block(W), 0, T, W, x, ldx, y, ldy, aligned);
}

static void add_with(long T, long W, const real *factors, real factor, const real *x, long ldx, real *y,
                     long ldy) {
    bool aligned = on_quads(x, ldx) && on_quads(y, ldy);
    LAUNCH(add_kernel, tile_grid(T, W), tile_block(W), 0, T, W, factors, factor, x, ldx, y, ldy, aligned);
}

static void add_columns(long T, long W, real factor, const real *x, long ldx, real *y, long ldy) {
    add_with(T, W, NULL, factor, x, ldx, y, ldy);
}

static void add_scaled_rows(long T, long D, const real *c, const real *x, real *y) {
    add_with(T, D, c, 0, x, D, y, D);
}

static __global__ void squares_kernel(long n, real *x, bool aligned) {
    EACH_QUAD(at, n) {
        quad q = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++) q.v[i] *= q.v[i];
        store_quad(x + at, n - at, aligned, q);
    }
}

static __global__ void root_means_kernel(long n, real parts, real *x, bool aligned) {
    EACH_QUAD(at, n) {
        quad q = load_quad(x + at, n - at, aligned);
        for (int i = 0; i < 4; i++) q.v[i] = sqrtf(q.v[i] / parts);
        store_quad(x + at, n - at, aligned, q);
    }
}

static void squares(long n, real *x) {
    LAUNCH(squares_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, x, on_quads(x, 0));
}

static void root_means(long n, long parts, real *x) {
    LAUNCH(root_means_kernel, vector_grid(n), VECTOR_BLOCK, 0, n, (real)parts, x, on_quads(x, 0));
}

/* A thread has four columns of a row, whose key it computes for them. */
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

extern "C" void cuda_columns(struct ops *ops) {
    ops->copy_columns = copy_columns;
    ops->add_columns = add_columns;
    ops->add_scaled_rows = add_scaled_rows;
    ops->squares = squares;
    ops->root_means = root_means;
    ops->dropout = dropout;
}
