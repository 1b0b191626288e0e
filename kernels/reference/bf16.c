/* Products with operands in bf16, in software. */
#include "kernels/base/bf16.h"

#include "kernels/reference/trunk_parts.h"

static struct ops fp32;

static void gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
                 long ldb, real beta, real *c, long ldc) {
    if (!bf16_pays(m, n, k)) {
        fp32.gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long p = 0; p < k; p++)
                sum += (double)bf16_round(alpha * (ta == 'N' ? a[i * lda + p] : a[p * lda + i])) *
                       (double)bf16_round(tb == 'N' ? b[p * ldb + j] : b[j * ldb + p]);
            real *to = &c[i * ldc + j];
            *to = (real)(beta == 0 ? sum : sum + beta * *to);
        }
}

/* Of B alone, which is read by every row. */
static void gemm_rows(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                      const real *b, long ldb, real beta, real *c, long ldc) {
    if (tb == 'N' || !bf16_pays_rows(k)) {
        fp32.gemm_rows(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long p = 0; p < k; p++)
                sum += (double)(ta == 'N' ? a[i * lda + p] : a[p * lda + i]) *
                       (double)bf16_round(b[j * ldb + p]);
            real *to = &c[i * ldc + j];
            *to = (real)(beta == 0 ? alpha * sum : alpha * sum + beta * *to);
        }
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
