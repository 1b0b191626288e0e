/* What the forward and backward pass of tiled attention share: tile sizes, and products of operands as they are, or
 * in files that are compiled with ATTENTION_BF16 rounded to bf16, as numbers or with TILE_PAIRS as pairs (CMakeLists.txt
 * compiles both passes each way). */
#ifndef GDN_ATTENTION_TILE_H
#define GDN_ATTENTION_TILE_H

#include <math.h>

#include "kernels/base/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"
#include "kernels/cpu/vector_math.h"

enum {
    WIDE = 64,   /* vectors or rows of the side of a tile that runs along vector registers */
    HIGH = 32,   /* of the other side: lower, so that little above the diagonal is computed */
    SLICE = 128, /* of a head's width that is copied at a time; wider heads take several */
#ifdef TILE_PAIRS
    PER_OPERAND = 2, /* numbers, of neighbours along a product's inner dimension */
#else
    PER_OPERAND = 1,
#endif
};

/* An operand of a product: a part of a matrix as it lies, or copied to a buffer of `copy`. Element (i, j) is at
 * at[i·ld + j]. */
struct operand {
    const tile_operand *at;
    long ld;
};
struct copy {
    tile_operand t[WIDE * SLICE / PER_OPERAND];
};

/* Numbers of an inner dimension in operands. */
static inline long depth_of(long k) {
    return (k + PER_OPERAND - 1) / PER_OPERAND;
}

#if defined(TILE_PAIRS)
typedef uint16_t half __attribute__((may_alias)); /* of an operand */

/* The bf16 next to 16 numbers, each NaN a NaN; what is below the least normal float is 0. */
TILE_INLINE __m512i narrow(const real *x) {
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)));
}

/* x [m, k], m ≤ WIDE and k ≤ SLICE, to be summed over k; an odd k has a 0 behind it. */
static inline struct operand by_rows(long m, long k, const real *x, long ld, struct copy *copy) {
    for (long i = 0; i < m; i++) {
        half *row = (half *)(copy->t + i * (SLICE / PER_OPERAND));
        long j = 0;
        for (; j + 2 * TILE_LANES <= k; j += 2 * TILE_LANES)
            _mm512_storeu_si512(row + j, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i * ld + j + TILE_LANES),
                                                                      _mm512_loadu_ps(x + i * ld + j)));
        for (; j < k; j++) row[j] = to_bf16(x[i * ld + j]);
        if (k % 2) row[k] = 0;
    }
    return (struct operand){copy->t, SLICE / PER_OPERAND};
}

/* y [k, n], k ≤ WIDE and n ≤ SLICE, to be summed over k. */
static inline struct operand by_columns(long k, long n, const real *y, long ld, struct copy *copy) {
    for (long p = 0; p < k; p += 2) {
        const real *low = y + p * ld, *high = low + ld;
        tile_operand *to = copy->t + p / PER_OPERAND * SLICE;
        const bool both = p + 1 < k;
        long j = 0;
        for (; j + TILE_LANES <= n; j += TILE_LANES) {
            __m512i pairs = narrow(low + j);
            if (both) pairs = _mm512_or_si512(pairs, _mm512_slli_epi32(narrow(high + j), 16));
            _mm512_storeu_si512(to + j, pairs);
        }
        for (; j < n; j++) to[j] = to_bf16(low[j]) | (both ? (uint32_t)to_bf16(high[j]) << 16 : 0);
    }
    return (struct operand){copy->t, SLICE};
}
#elif defined(ATTENTION_BF16)
static inline struct operand by_rows(long m, long k, const real *x, long ld, struct copy *copy) {
    for (long i = 0; i < m; i++)
#pragma omp simd
        for (long j = 0; j < k; j++) copy->t[i * SLICE + j] = bf16_round(x[i * ld + j]);
    return (struct operand){copy->t, SLICE};
}
static inline struct operand by_columns(long k, long n, const real *y, long ld, struct copy *copy) {
    return by_rows(k, n, y, ld, copy);
}
#else
static inline struct operand by_rows(long m, long k, const real *x, long ld, struct copy *copy) {
    (void)m, (void)k, (void)copy;
    return (struct operand){x, ld};
}
static inline struct operand by_columns(long k, long n, const real *y, long ld, struct copy *copy) {
    return by_rows(k, n, y, ld, copy);
}
#endif

/* Up to WIDE rows of a matrix, transposed, and where they came from. */
struct transposed {
    const real *from;
    tile_operand t[SLICE / PER_OPERAND * WIDE]; /* [SLICE / PER_OPERAND, WIDE] */
};

#ifndef __clang__ /* which has no __builtin_shuffle */
/* Rows i and i + step exchange blocks of `step` numbers. Unrolled with a constant step, so that the shuffles
 * are constant too. */
TILE_INLINE void exchange(tile_operands row[TILE_LANES], int step) {
    tile_index low, high; /* which number of a row and of its partner goes where */
#pragma GCC unroll 16
    for (int i = 0; i < TILE_LANES; i++) {
        low[i] = i & step ? TILE_LANES + i - step : i;
        high[i] = i & step ? TILE_LANES + i : i + step;
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_LANES; i++) {
        if (i & step) continue;
        tile_operands a = row[i], b = row[i + step];
        row[i] = __builtin_shuffle(a, b, low);
        row[i + step] = __builtin_shuffle(a, b, high);
    }
}
#endif

/* The LANES × LANES operands at `from` (row distance ld), transposed to `to` (row distance WIDE). */
static inline void transpose_block(const tile_operand *from, long ld, tile_operand *to) {
#ifdef __clang__
    for (int i = 0; i < TILE_LANES; i++)
        for (int j = 0; j < TILE_LANES; j++) to[j * WIDE + i] = from[i * ld + j];
#else
    tile_operands row[TILE_LANES];
    for (int i = 0; i < TILE_LANES; i++) row[i] = *(const tile_operands *)(from + i * ld);
    exchange(row, 1);
    if (TILE_LANES > 2) exchange(row, 2);
    if (TILE_LANES > 4) exchange(row, 4);
    if (TILE_LANES > 8) exchange(row, 8);
    for (int i = 0; i < TILE_LANES; i++) *(tile_operands *)(to + i * WIDE) = row[i];
#endif
}

/* Of a matrix [rows, width]; columns beyond `rows` become 0. */
static inline void transpose(long rows, long width, const real *from, long ld, struct transposed *to) {
    struct copy copy;
    const struct operand x = by_rows(rows, width, from, ld, &copy);
    const long depth = depth_of(width), whole = rows / TILE_LANES * TILE_LANES, wide = depth / TILE_LANES * TILE_LANES;
    to->from = from;
    for (long i = 0; i < whole; i += TILE_LANES)
        for (long j = 0; j < wide; j += TILE_LANES) transpose_block(x.at + i * x.ld + j, x.ld, to->t + j * WIDE + i);
    for (long j = 0; j < depth; j++)
        for (long i = j < wide ? whole : 0; i < WIDE; i++) to->t[j * WIDE + i] = i < rows ? x.at[i * x.ld + j] : 0;
}

/* out [m, WIDE] (columns `first` to `end`) = x [m, hd] · yᵀ, y [rows, hd]. `kept` holds yᵀ from the call
 * before where y is still the same and fits. */
static inline void product_transposed(long m, long hd, const real *x, long ldx, long rows, const real *y,
                                      long ldy, struct transposed *kept, long first, long end, real *out) {
    struct copy copy;
    for (long at = 0; at < hd; at += SLICE) {
        long width = hd - at < SLICE ? hd - at : SLICE;
        if (kept->from != y + at) transpose(rows, width, y + at, ldy, kept);
        const struct operand a = by_rows(m, width, x + at, ldx, &copy);
        tile_product(m, end - first, depth_of(width), a.at, a.ld, 1, kept->t + first, WIDE, at > 0, out + first,
                     WIDE);
    }
}

/* out [m, hd] = or += a·y of matrices a [m, k], whose rows and columns are so far apart, and y [k, hd]. */
static inline void product_onto(long m, long hd, long k, const tile_operand *a, long row, long column, const real *y,
                                long ldy, bool accumulate, real *out, long ldo) {
    struct copy copy;
    for (long at = 0; at < hd; at += SLICE) {
        const long width = hd - at < SLICE ? hd - at : SLICE;
        const struct operand b = by_columns(k, width, y + at, ldy, &copy);
        tile_product(m, width, depth_of(k), a, row, column, b.at, b.ld, accumulate, out + at, ldo);
    }
}

static inline long at_most(long a, long b) {
    return a < b ? a : b;
}

#endif
