/* Products of small matrices that stay in the nearest cache, for attention: one thread, no packing by a
 * library. Blocks of the result are held in vector registers while the inner dimension runs. */
#ifndef GDN_TILE_H
#define GDN_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/real.h"
#include "kernels/cpu/isa.h"

#define TILE_INLINE static inline __attribute__((always_inline))

/* A vector register's worth of numbers, at any address. */
typedef real tile_vector __attribute__((vector_size(ISA_VECTOR_BYTES), aligned(sizeof(real)), may_alias));

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

/* One block: c [rows, vectors·LANES] = or += a·b. Called with constants for rows and vectors. */
TILE_INLINE void tile_block(int rows, int vectors, long k, const real *a, long arow, long acolumn,
                            const real *b, long ldb, bool accumulate, real *c, long ldc) {
    tile_vector sum[TILE_BLOCK_ROWS][TILE_BLOCK_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) sum[i][v] = (tile_vector){0};
    for (long p = 0; p < k; p++) {
        tile_vector right[TILE_BLOCK_VECTORS];
        for (int v = 0; v < vectors; v++) right[v] = *(const tile_vector *)(b + p * ldb + v * TILE_LANES);
        for (int i = 0; i < rows; i++) {
            real left = a[i * arow + p * acolumn];
            for (int v = 0; v < vectors; v++) sum[i][v] += left * right[v];
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
 * [k, n] with row distance ldb. */
static inline void tile_product(long m, long n, long k, const real *a, long arow, long acolumn, const real *b,
                                long ldb, bool accumulate, real *c, long ldc) {
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
            for (long p = 0; p < k; p++) sum += a[i * arow + p * acolumn] * b[p * ldb + j];
            c[i * ldc + j] = accumulate ? c[i * ldc + j] + sum : sum;
        }
}

#endif
