/* Products with operands in bf16: what of them is compiled for each instruction set. Those by rows and
 * attention's are gemm_rows.c, attention.c and attention_back.c, compiled again for other operands. */
#include "kernels/base/bf16.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_bf16.h"

void ISA_JOIN(cpu_gemm_rows, ISA_BF16)(struct ops *ops);
/* Both passes in other forms of operands: rounded numbers, and of some instruction sets pairs (CMakeLists.txt). */
void ISA_JOIN(cpu_attention, ISA_BF16)(struct ops *ops);
void ISA_JOIN(cpu_attention_back, ISA_BF16)(struct ops *ops);
#ifdef ISA_PAIRS
void ISA_JOIN(cpu_attention, ISA_PAIRS)(struct ops *ops);
void ISA_JOIN(cpu_attention_back, ISA_PAIRS)(struct ops *ops);
#endif

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

/* Attention whose products are in bf16, and as it is for those that do not pay. */
static struct ops narrow_ops, fp32_ops;

static const struct ops *of_products(long S, long N, long hd) {
    return bf16_pays_attention(S, N, hd) ? &narrow_ops : &fp32_ops;
}

static void attention(long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start,
                      const real *qkv, real *o, real *lse) {
    of_products(S, S, hd)->attention(B, S, H, K, hd, mask, start, qkv, o, lse);
}

static void attention_back(long B, long S, long H, long K, long hd, const struct mask *mask, const int32_t *start,
                           const real *qkv, const real *o, const real *lse, const real *dout, real *dqkv,
                           real *work) {
    of_products(S, S, hd)->attention_back(B, S, H, K, hd, mask, start, qkv, o, lse, dout, dqkv, work);
}

static void attention_piece(long S, long N, long position, long key, long H, long K, long hd,
                            const struct mask *mask, const int32_t *start, const real *q, long ldq, const real *kv,
                            long ldkv, real *o, real *lse) {
    of_products(S, N, hd)->attention_piece(S, N, position, key, H, K, hd, mask, start, q, ldq, kv, ldkv, o, lse);
}

static void attention_piece_back(long S, long N, long position, long key, long H, long K, long hd,
                                 const struct mask *mask, const int32_t *start, const real *q, long ldq,
                                 const real *kv, long ldkv, const real *o, const real *lse, const real *dout,
                                 real *dq, real *dkv, real *work) {
    of_products(S, N, hd)->attention_piece_back(S, N, position, key, H, K, hd, mask, start, q, ldq, kv, ldkv, o,
                                                lse, dout, dq, dkv, work);
}

void ISA_NAME(cpu_bf16)(struct ops *ops, bool native) {
    fp32_ops = narrow_ops = *ops;
#ifdef ISA_PAIRS
    if (native && __builtin_cpu_supports("avx512bf16")) {
        ISA_JOIN(cpu_attention, ISA_PAIRS)(&narrow_ops);
        ISA_JOIN(cpu_attention_back, ISA_PAIRS)(&narrow_ops);
    } else
#endif
    {
        (void)native;
        ISA_JOIN(cpu_attention, ISA_BF16)(&narrow_ops);
        ISA_JOIN(cpu_attention_back, ISA_BF16)(&narrow_ops);
    }
    ISA_JOIN(cpu_gemm_rows, ISA_BF16)(ops); /* which keeps the table as it is here, in fp32 */
    ops->precision = PRECISION_BF16;
    ops->gemm = gemm;
    ops->linear = linear;
    ops->attention = attention;
    ops->attention_back = attention_back;
    ops->attention_piece = attention_piece;
    ops->attention_piece_back = attention_piece_back;
}
