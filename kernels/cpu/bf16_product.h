/* Products of bf16 matrices by the processor's units for them (AVX-512 BF16, AMX), summed in fp32: oneDNN's.
 */
#ifndef GDN_BF16_PRODUCT_H
#define GDN_BF16_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether processor and library have them; to be called once, before the first product. */
bool bf16_product_open(void);

/* C [m, n] = op(A)·op(B), with `add` C += that, on the calling thread alone, `thread` of those that compute
 * at the same time, below MOST_THREADS. op and row distances as in the gemm operation; nothing is 0. */
void bf16_product(int thread, char ta, char tb, long m, long n, long k, const uint16_t *a, long lda,
                  const uint16_t *b, long ldb, bool add, float *c, long ldc);

/* "oneDNN 2.6.3 bf16 (AVX-512 BF16)". Owned by this module. */
const char *bf16_product_describe(void);

#endif
