/* Products with operands in bf16: what of them is compiled for each instruction set. */
#include "kernels/base/bf16.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_bf16.h"

static void narrow(long n, real factor, const real *x, uint16_t *y) {
#pragma omp simd
    for (long i = 0; i < n; i++) y[i] = bf16_of(factor * x[i]);
}

static void round_row(long n, real factor, const real *x, real *y) {
#pragma omp simd
    for (long i = 0; i < n; i++) y[i] = bf16_round(factor * x[i]);
}

static void gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
                 long ldb, real beta, real *c, long ldc) {
    static const struct bf16_rows rows = {narrow, round_row};
    if (bf16_pays(m, n, k))
        gemm_bf16(&rows, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        gemm_library(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void linear(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                   long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    (void)weight_id; /* nothing is scaled */
    gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void ISA_NAME(cpu_bf16)(struct ops *ops) {
    ops->precision = PRECISION_BF16;
    ops->gemm = gemm;
    ops->linear = linear;
}
