/* The gemm operation with operands rounded to bf16 and sums in fp32.
 *
 * A processor with units for it multiplies copies of the operands in bf16 (bf16_product.h). Any other, and
 * one that GDN_ISA forces to an instruction set, rounds copies of `real` and has the product of fp32 multiply
 * them: the same products of the same numbers, as those of two bf16 are exact in fp32, and no faster than
 * fp32. */
#ifndef GDN_GEMM_BF16_H
#define GDN_GEMM_BF16_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/real.h"

/* Copies of a row of n elements, multiplied by factor first, rounded: in bf16, and in `real`. */
struct bf16_rows {
    void (*narrow)(long n, real factor, const real *x, uint16_t *y);
    void (*round)(long n, real factor, const real *x, real *y);
};

/* To be called once, before the first product; `isa` as in gemm_prepare. */
void gemm_bf16_prepare(const char *isa);

/* Whether the processor's units multiply. */
bool gemm_bf16_native(void);

/* The operation: alpha is multiplied into A before that is rounded. The same bits for a given number of
 * threads. */
void gemm_bf16(const struct bf16_rows *rows, char ta, char tb, long m, long n, long k, real alpha,
               const real *a, long lda, const real *b, long ldb, real beta, real *c, long ldc);

/* Library and units, or what computes in their place. Owned by this module. */
const char *gemm_bf16_describe(void);

#endif
