/* The matrix product of the CPU backend, by a library: oneDNN for floats, else a BLAS with a C interface. */
#ifndef GDN_GEMM_H
#define GDN_GEMM_H

#include "kernels/ops.h"

/* Readies the library; to be called once, before the first product. `isa` "v2", "v3" or "v4" tells it to go
 * no further than that instruction set, where it can be told; NULL leaves it the choice. */
void gemm_prepare(const char *isa);

/* The gemm operation. The same bits for a given number of threads; inside a parallel region it runs on the
 * calling thread alone. */
void gemm_library(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                  const real *b, long ldb, real beta, real *c, long ldc);

/* The library and the kernels it chose, e.g. "oneDNN 2.6.3 sgemm (AVX-512)". Owned by this module. */
const char *gemm_describe(void);

/* How C [m, n] is cut: `threads` blocks of [height, width], `columns` of them side by side, each computed by
 * a thread alone. Beyond the last rows and columns there are none. */
struct gemm_blocks {
    long threads, columns, height, width;
};
struct gemm_blocks gemm_blocks(long m, long n, long k);

#endif
