/* The matrix product: C is cut into one block a thread, and each thread has the library compute its block
 * alone. At two threads that was never slower than oneDNN's own threading, a third faster on small matrices,
 * and it needs nothing of a BLAS but its one-thread product. */
#include "kernels/cpu/gemm.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#ifdef GDN_ONEDNN

#include <dnnl.h>

#include "kernels/reference/reference.h"

static void product(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                    const real *b, long ldb, real beta, real *c, long ldc) {
    if (dnnl_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success) return;
    /* It found no memory to pack the matrices in, and has not touched C. */
    struct ops plain;
    reference_trunk(&plain);
    plain.gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_prepare(const char *isa) {
    if (isa && strcmp(isa, "v2") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    if (isa && strcmp(isa, "v3") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
}

const char *gemm_describe(void) {
    static char text[80];
    const dnnl_version_t *version = dnnl_version();
    unsigned isa = dnnl_get_effective_cpu_isa(); /* a set of bits */
    bool avx512 = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
    bool avx2 = (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2;
    snprintf(text, sizeof text, "oneDNN %d.%d.%d sgemm (%s)", version->major, version->minor, version->patch,
             avx512 ? "AVX-512"
             : avx2 ? "AVX2"
                    : "less than AVX2");
    return text;
}

#else

#include <cblas.h>

#include "kernels/base/blas_threads.h"

#ifdef GDN_DOUBLE
#define NAME "dgemm"
#define PRODUCT cblas_dgemm
#else
#define NAME "sgemm"
#define PRODUCT cblas_sgemm
#endif

/* Only OpenBLAS has this, and only the BLAS found at run time tells whether it is there. */
char *openblas_get_corename(void) __attribute__((weak));

static void product(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                    const real *b, long ldb, real beta, real *c, long ldc) {
    PRODUCT(CblasRowMajor, ta == 'N' ? CblasNoTrans : CblasTrans, tb == 'N' ? CblasNoTrans : CblasTrans,
            (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}

void gemm_prepare(const char *isa) {
    (void)isa;
    blas_one_thread();
}

const char *gemm_describe(void) {
    static char text[80] = "BLAS " NAME;
    if (openblas_get_corename)
        snprintf(text, sizeof text, "OpenBLAS " NAME " (%s kernels)", openblas_get_corename());
    return text;
}

#endif

enum {
    MIN_PRODUCTS = 1 << 18, /* multiplications worth waking a thread for: about a microsecond */
    GRAIN = 16,             /* rows and columns of a block are a multiple of this, but for the last */
};

static long piece(long size, long parts) {
    return ((size + parts - 1) / parts + GRAIN - 1) / GRAIN * GRAIN;
}

/* The number of row blocks, a divisor of `threads`, that makes blocks nearest to square: least to read. */
static long row_blocks(long m, long n, long threads) {
    long best = 1;
    for (long rows = 1; rows <= threads; rows++) {
        if (threads % rows) continue;
        if (piece(m, rows) + piece(n, threads / rows) < piece(m, best) + piece(n, threads / best))
            best = rows;
    }
    return best;
}

struct gemm_blocks gemm_blocks(long m, long n, long k) {
    long threads = omp_in_parallel() ? 1 : omp_get_max_threads(), worth = m * n * k / MIN_PRODUCTS;
    if (threads > worth) threads = worth;
    if (threads <= 1) return (struct gemm_blocks){1, 1, m, n};
    long rows = row_blocks(m, n, threads), columns = threads / rows;
    return (struct gemm_blocks){threads, columns, piece(m, rows), piece(n, columns)};
}

void gemm_library(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                  const real *b, long ldb, real beta, real *c, long ldc) {
    const struct gemm_blocks blocks = gemm_blocks(m, n, k);
    const long height = blocks.height, width = blocks.width;
    if (blocks.threads == 1) {
        product(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
#pragma omp parallel for schedule(static, 1) num_threads(blocks.threads)
    for (long block = 0; block < blocks.threads; block++) {
        long i = block / blocks.columns * height, j = block % blocks.columns * width;
        if (i >= m || j >= n) continue;
        product(ta, tb, m - i < height ? m - i : height, n - j < width ? n - j : width, k, alpha,
                a + (ta == 'N' ? i * lda : i), lda, b + (tb == 'N' ? j : j * ldb), ldb, beta, c + i * ldc + j,
                ldc);
    }
}
