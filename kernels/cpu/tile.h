/* Products of small matrices that stay in the nearest cache, for attention: one thread, no packing by a
 * library. Blocks of the result are held in vector registers while the inner dimension runs.
 *
 * What is multiplied are numbers, or in a file that is compiled with TILE_PAIRS pairs of bf16, neighbours along the
 * inner dimension, the first in the lower half: an instruction of AVX-512 BF16 adds both products to a sum in fp32. */
#ifndef GDN_TILE_H
#define GDN_TILE_H

#include <stdbool.h>
#include <stdint.h>
#ifdef TILE_PAIRS
#include <immintrin.h>

#include "kernels/base/bf16.h"
#endif

#include "kernels/base/real.h"
#include "kernels/cpu/isa.h"

#define TILE_INLINE static inline __attribute__((always_inline))

/* A vector register's worth of numbers, at any address. */
typedef real tile_vector __attribute__((vector_size(ISA_VECTOR_BYTES), aligned(sizeof(real)), may_alias));

/* An element of an operand, and a vector register of them. */
#ifdef TILE_PAIRS
typedef uint32_t tile_operand;
#else
typedef real tile_operand;
#endif
typedef tile_operand tile_operands
    __attribute__((vector_size(ISA_VECTOR_BYTES), aligned(sizeof(tile_operand)), may_alias));

/* As many integers, which number the elements of two vectors in a shuffle. */
#ifdef GDN_DOUBLE
typedef int64_t tile_index __attribute__((vector_size(ISA_VECTOR_BYTES)));
#else
typedef int32_t tile_index __attribute__((vector_size(ISA_VECTOR_BYTES)));
#endif

enum {
    TILE_LANES = ISA_VECTOR_BYTES / (int)sizeof(real),
    /* Rows and vectors of a block: enough sums in flight to hide the latency of a multiply-add, few enough
     * for the 32 registers of AVX-512 or the 16 of the others. */
    TILE_BLOCK_ROWS = ISA_VECTOR_BYTES == 64 ? 8 : 4,
    TILE_BLOCK_VECTORS = 2,
    TILE_BLOCK_COLUMNS = TILE_BLOCK_VECTORS * TILE_LANES,
};

/* sum + left·right, of vectors and of one element. */
TILE_INLINE tile_vector tile_add(tile_vector sum, tile_operand left, tile_operands right) {
#ifdef TILE_PAIRS
    return (tile_vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)left), (__m512bh)right);
#else
    return sum + left * right;
#endif
}
TILE_INLINE real tile_add_one(real sum, tile_operand left, tile_operand right) {
#ifdef TILE_PAIRS
    sum += from_bf16((uint16_t)left) * from_bf16((uint16_t)right);
    return sum + from_bf16((uint16_t)(left >> 16)) * from_bf16((uint16_t)(right >> 16));
#else
    return sum + left * right;
#endif
}

/* One block: c [rows, vectors·LANES] = or += a·b. Called with constants for rows and vectors. */
TILE_INLINE void tile_block(int rows, int vectors, long k, const tile_operand *a, long arow, long acolumn,
                            const tile_operand *b, long ldb, bool accumulate, real *c, long ldc) {
    tile_vector sum[TILE_BLOCK_ROWS][TILE_BLOCK_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) sum[i][v] = (tile_vector){0};
    for (long p = 0; p < k; p++) {
        tile_operands right[TILE_BLOCK_VECTORS];
        for (int v = 0; v < vectors; v++) right[v] = *(const tile_operands *)(b + p * ldb + v * TILE_LANES);
        for (int i = 0; i < rows; i++) {
            tile_operand left = a[i * arow + p * acolumn];
            for (int v = 0; v < vectors; v++) sum[i][v] = tile_add(sum[i][v], left, right[v]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            tile_vector *to = (tile_vector *)(c + i * ldc + v * TILE_LANES);
            if (accumulate)
                *to += sum[i][v];
            else
                *to = sum[i][v];
        }
}

/* c [m, n] = or += a·b with element (i, p) of a at a[i·arow + p·acolumn], so that a may be transposed, and b
 * [k, n] with row distance ldb; k in operands. */
static inline void tile_product(long m, long n, long k, const tile_operand *a, long arow, long acolumn,
                                const tile_operand *b, long ldb, bool accumulate, real *c, long ldc) {
    long j = 0;
    for (; j + TILE_BLOCK_COLUMNS <= n; j += TILE_BLOCK_COLUMNS) {
        long i = 0;
        for (; i + TILE_BLOCK_ROWS <= m; i += TILE_BLOCK_ROWS)
            tile_block(TILE_BLOCK_ROWS, TILE_BLOCK_VECTORS, k, a + i * arow, arow, acolumn, b + j, ldb,
                       accumulate, c + i * ldc + j, ldc);
        for (; i < m; i++)
            tile_block(1, TILE_BLOCK_VECTORS, k, a + i * arow, arow, acolumn, b + j, ldb, accumulate,
                       c + i * ldc + j, ldc);
    }
    for (; j + TILE_LANES <= n; j += TILE_LANES)
        for (long i = 0; i < m; i++)
            tile_block(1, 1, k, a + i * arow, arow, acolumn, b + j, ldb, accumulate, c + i * ldc + j, ldc);
    for (; j < n; j++)
        for (long i = 0; i < m; i++) {
            real sum = 0;
            for (long p = 0; p < k; p++) sum = tile_add_one(sum, a[i * arow + p * acolumn], b[p * ldb + j]);
            c[i * ldc + j] = accumulate ? c[i * ldc + j] + sum : sum;
        }
}

#endif
