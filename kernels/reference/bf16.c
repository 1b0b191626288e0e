/* Products with operands in bf16, in software. */
#include "kernels/base/bf16.h"

#include "kernels/reference/trunk_parts.h"

static struct ops fp32;

/* Of a rounded B, and of A as it is or rounded: then alpha is multiplied into it before that, else into the
 * sum. */
static void product(bool round_a, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                    long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    const real outside = round_a ? 1 : alpha;
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long p = 0; p < k; p++) {
                const real left = ta == 'N' ? a[i * lda + p] : a[p * lda + i];
                sum += (double)(round_a ? bf16_round(alpha * left) : left) *
                       (double)bf16_round(tb == 'N' ? b[p * ldb + j] : b[j * ldb + p]);
            }
            real *to = &c[i * ldc + j];
            *to = (real)(beta == 0 ? outside * sum : outside * sum + beta * *to);
        }
}

static void gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
                 long ldb, real beta, real *c, long ldc) {
    if (bf16_pays(m, n, k))
        product(true, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        fp32.gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void gemm_rows(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                      const real *b, long ldb, real beta, real *c, long ldc) {
    if (tb == 'T' && bf16_pays_rows(k))
        product(false, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        fp32.gemm_rows(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void linear(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                   long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    (void)weight_id; /* nothing is scaled */
    gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void reference_bf16(struct ops *ops) {
    reference_trunk(&fp32);
    ops->precision = PRECISION_BF16;
    ops->gemm = gemm;
    ops->gemm_rows = gemm_rows;
    ops->linear = linear;
    reference_bf16_attention(ops);
}
