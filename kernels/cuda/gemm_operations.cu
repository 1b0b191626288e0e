/* The operations `gemm` and `linear`. In fp32 they are the library's; in fewer bits operands are converted
 * first, and sums and results stay float. */
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/parts.h"
#include "kernels/cuda/scale.h"

/* op(A) [m, k], and op(B) [k, n] by its columns. */
static struct operand left(char ta, long m, long k, const float *a, long lda, cudaDataType_t type) {
    return (struct operand){a, lda, ta == 'N', m, k, type, false, NULL, NULL, NULL};
}
static struct operand right(char tb, long n, long k, const float *b, long ldb, cudaDataType_t type) {
    return (struct operand){b, ldb, tb == 'T', n, k, type, false, NULL, NULL, NULL};
}

/* What there is to do without a sum; true: nothing is left. */
static bool trivial(long m, long n, long k, float beta, float *c, long ldc) {
    if (m > 0 && n > 0 && k > 0) return false;
    if (m > 0 && n > 0) add_result(m, n, beta, NULL, 0, c, ldc);
    return true;
}

static void gemm_fp32(char ta, char tb, long m, long n, long k, float alpha, const float *a, long lda,
                      const float *b, long ldb, float beta, float *c, long ldc) {
    if (trivial(m, n, k, beta, c, ldc)) return;
    struct factor left = {a, CUDA_R_32F, lda, NULL}, right = {b, CUDA_R_32F, ldb, NULL};
    library_product(ta, tb, m, n, k, alpha, &left, &right, beta, c, ldc);
}

template <cudaDataType_t TYPE>
static void gemm_16(char ta, char tb, long m, long n, long k, float alpha, const float *a, long lda,
                    const float *b, long ldb, float beta, float *c, long ldc) {
    if (trivial(m, n, k, beta, c, ldc)) return;
    struct operand x = left(ta, m, k, a, lda, TYPE), y = right(tb, n, k, b, ldb, TYPE);
    weights_find(&x);
    weights_find(&y);
    pieces_product(&x, &y, alpha, beta, c, ldc);
}

static void scale_by(struct operand *x, int weight_id, enum role role) {
    x->type = role == ROLE_DY ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
    x->scale = scale_of(weight_id, role);
}

static void linear_fp8(int weight_id, char ta, char tb, long m, long n, long k, float alpha, const float *a,
                       long lda, const float *b, long ldb, float beta, float *c, long ldc) {
    if (trivial(m, n, k, beta, c, ldc)) return;
    struct operand x = left(ta, m, k, a, lda, CUDA_R_8F_E4M3), y = right(tb, n, k, b, ldb, CUDA_R_8F_E4M3);
    scale_by(&x, weight_id, ta == 'N' && tb == 'T' ? ROLE_X : ROLE_DY); /* forward x·Wᵀ, else dy·W or dyᵀ·x */
    scale_by(&y, weight_id, ta == 'T' ? ROLE_X : ROLE_W);
    if (ta == 'N') weights_find_eight(weight_id, &y);
    x.unit = y.unit = scales_unit();
    if (y.ready)
        x.partner = y.scale;
    else
        y.partner = x.scale;
    scales_begin(&x, &y);
    pieces_product(&x, &y, alpha, beta, c, ldc);
    scales_end(&x, &y);
}

template <cudaDataType_t TYPE> static void hold(const float *weights, long count, void *copy) {
    weights_hold(weights, count, copy, TYPE);
}

static void release(void) {
    weights_hold(NULL, 0, NULL, CUDA_R_16BF);
}

/* A product with a weight as any other. */
template <void (*GEMM)(char, char, long, long, long, float, const float *, long, const float *, long, float,
                       float *, long)>
static void linear_as(int, char ta, char tb, long m, long n, long k, float alpha, const float *a, long lda,
                      const float *b, long ldb, float beta, float *c, long ldc) {
    GEMM(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cuda_gemm(struct ops *ops, enum precision precision) {
    library_open();
    if (precision == PRECISION_FP32) {
        ops->gemm = gemm_fp32;
        ops->linear = linear_as<gemm_fp32>;
        return;
    }
    pieces_open();
    ops->hold = precision == PRECISION_FP16 ? hold<CUDA_R_16F> : hold<CUDA_R_16BF>;
    ops->release = release;
    if (precision == PRECISION_FP16) {
        ops->gemm = gemm_16<CUDA_R_16F>;
        ops->linear = linear_as<gemm_16<CUDA_R_16F>>;
        return;
    }
    ops->gemm = gemm_16<CUDA_R_16BF>;
    ops->linear = linear_as<gemm_16<CUDA_R_16BF>>;
    if (precision == PRECISION_FP8) {
        scales_open();
        ops->linear = linear_fp8;
    }
}
