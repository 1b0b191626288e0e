/* What the forward and backward pass of tiled attention share: tile sizes and products with a transposed
 * matrix. */
#ifndef GDN_ATTENTION_TILE_H
#define GDN_ATTENTION_TILE_H

#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vector_math.h"

enum {
    WIDE = 64,   /* vectors or rows of the side of a tile that runs along vector registers */
    HIGH = 32,   /* of the other side: lower, so that little above the diagonal is computed */
    SLICE = 128, /* of a head's width that is transposed at a time; wider heads take several */
};

/* Up to WIDE rows of a matrix, transposed, and where they came from. */
struct transposed {
    const real *from;
    real t[SLICE * WIDE]; /* [SLICE, WIDE] */
};

#ifndef __clang__ /* which has no __builtin_shuffle */
/* Rows i and i + step exchange blocks of `step` numbers. Unrolled with a constant step, so that the shuffles
 * are constant too. */
TILE_INLINE void exchange(tile_vector row[TILE_LANES], int step) {
    tile_index low, high; /* which number of a row and of its partner goes where */
#pragma GCC unroll 16
    for (int i = 0; i < TILE_LANES; i++) {
        low[i] = i & step ? TILE_LANES + i - step : i;
        high[i] = i & step ? TILE_LANES + i : i + step;
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_LANES; i++) {
        if (i & step) continue;
        tile_vector a = row[i], b = row[i + step];
        row[i] = __builtin_shuffle(a, b, low);
        row[i + step] = __builtin_shuffle(a, b, high);
    }
}
#endif

/* The LANES × LANES numbers at `from` (row distance ld), transposed to `to` (row distance WIDE). */
static inline void transpose_block(const real *from, long ld, real *to) {
#ifdef __clang__
    for (int i = 0; i < TILE_LANES; i++)
        for (int j = 0; j < TILE_LANES; j++) to[j * WIDE + i] = from[i * ld + j];
#else
    tile_vector row[TILE_LANES];
    for (int i = 0; i < TILE_LANES; i++) row[i] = *(const tile_vector *)(from + i * ld);
    exchange(row, 1);
    if (TILE_LANES > 2) exchange(row, 2);
    if (TILE_LANES > 4) exchange(row, 4);
    if (TILE_LANES > 8) exchange(row, 8);
    for (int i = 0; i < TILE_LANES; i++) *(tile_vector *)(to + i * WIDE) = row[i];
#endif
}

/* Columns beyond `rows` become 0. */
static inline void transpose(long rows, long width, const real *from, long ld, struct transposed *to) {
    long whole = rows / TILE_LANES * TILE_LANES, wide = width / TILE_LANES * TILE_LANES;
    to->from = from;
    for (long i = 0; i < whole; i += TILE_LANES)
        for (long j = 0; j < wide; j += TILE_LANES)
            transpose_block(from + i * ld + j, ld, to->t + j * WIDE + i);
    for (long j = 0; j < width; j++)
        for (long i = j < wide ? whole : 0; i < WIDE; i++)
            to->t[j * WIDE + i] = i < rows ? from[i * ld + j] : 0;
}

/* out [m, WIDE] (columns `first` to `end`) = x [m, hd] · yᵀ, y [rows, hd]. `kept` holds yᵀ from the call
 * before where y is still the same and fits. */
static inline void product_transposed(long m, long hd, const real *x, long ldx, long rows, const real *y,
                                      long ldy, struct transposed *kept, long first, long end, real *out) {
    for (long at = 0; at < hd; at += SLICE) {
        long width = hd - at < SLICE ? hd - at : SLICE;
        if (kept->from != y + at) transpose(rows, width, y + at, ldy, kept);
        tile_product(m, end - first, width, x + at, ldx, 1, kept->t + first, WIDE, at > 0, out + first, WIDE);
    }
}

static inline long at_most(long a, long b) {
    return a < b ? a : b;
}

#endif
