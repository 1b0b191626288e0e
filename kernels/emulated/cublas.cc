/* The emulated device's cuBLASLt. A product is queued like a kernel; its operands are turned into floats
 * and given to the host's BLAS on one thread. Sums are multiplied by alpha and both units, which the library
 * multiplies first: seen on an H200, where two of 2^91 make a sum of 0 not a number.
 *
 * Refused is what the library refuses on sm_90: operands of 8 bits that are not 'T', 'N', or two of e5m2, or
 * of sizes that are not multiples of 16, and units of others. And, with operands of 16 bits, matrices and
 * rows that are not aligned to 16 bytes, with which the library is slow at best. An algorithm serves only
 * what it was asked for, and only memory as well aligned. */
#include <cublasLt.h>

#include <cblas.h>
#include <vector>

#include "emulated.h"

extern "C" {
#include "kernels/base/blas_threads.h"
}
#include "kernels/cuda/number.h"

namespace {

struct layout {
    int64_t type, rows, columns, ld;
};
struct product {
    int64_t compute, scale;
    int32_t op[2];
    const float *unit[2];
};
struct preference {
    uint64_t workspace;
    uint32_t schemes, alignment[4]; /* of A, B, C, D in bytes */
};
/* What an algorithm was asked for. */
struct algorithm {
    uint64_t question;
    size_t workspace;
    uint32_t alignment[4];
};
static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
                  sizeof(product) <= sizeof(cublasLtMatmulDescOpaque_t) &&
                  sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
                  sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t),
              "");

template <typename Inside, typename Opaque> Inside inside(const Opaque *opaque) {
    Inside it;
    memcpy(&it, opaque, sizeof it);
    return it;
}

template <typename Inside, typename Opaque> cublasStatus_t put(Opaque *opaque, const Inside &it) {
    memcpy(opaque, &it, sizeof it);
    return CUBLAS_STATUS_SUCCESS;
}

int64_t bytes_of(int64_t type) {
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 1;
}

struct question {
    product what;
    layout of[4]; /* A, B, C, D */
};

question question_of(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
    return {inside<product>(desc),
            {inside<layout>(a), inside<layout>(b), inside<layout>(c), inside<layout>(d)}};
}

/* Of all but the values of pointers. */
uint64_t hash_of(const question &asked) {
    uint64_t words[20] = {(uint64_t)asked.what.op[0], (uint64_t)asked.what.op[1], asked.what.unit[0] != NULL,
                          asked.what.unit[1] != NULL};
    memcpy(words + 4, asked.of, sizeof asked.of);
    uint64_t hash = 1;
    for (uint64_t word : words) hash = (hash ^ word) * 0x100000001b3u + (hash >> 40);
    return hash;
}

bool is_eight(const question &asked) {
    return bytes_of(asked.of[0].type) == 1;
}

/* Matrices that fit each other and their own rows. */
bool consistent(const question &asked) {
    const layout &a = asked.of[0], &b = asked.of[1], &c = asked.of[2];
    bool turn_a = asked.what.op[0] == CUBLAS_OP_T, turn_b = asked.what.op[1] == CUBLAS_OP_T;
    for (const layout &each : asked.of)
        if (each.rows < 1 || each.columns < 1 || each.ld < each.rows) return false;
    return memcmp(&c, &asked.of[3], sizeof c) == 0 && (turn_a ? a.columns : a.rows) == c.rows &&
           (turn_b ? b.rows : b.columns) == c.columns &&
           (turn_a ? a.rows : a.columns) == (turn_b ? b.columns : b.rows);
}

bool supported(const question &asked, const uint32_t alignment[4]) {
    const layout &a = asked.of[0], &b = asked.of[1], &c = asked.of[2];
    bool eight = is_eight(asked), units = asked.what.unit[0] || asked.what.unit[1];
    if (asked.what.compute != CUBLAS_COMPUTE_32F || asked.what.scale != CUDA_R_32F || c.type != CUDA_R_32F)
        return false;
    if (bytes_of(a.type) != bytes_of(b.type) || (!eight && (a.type != b.type || units))) return false;
    if (bytes_of(a.type) == 4) return true;
    for (int i = 0; i < 4; i++)
        if (alignment[i] % 16 || asked.of[i].ld * bytes_of(asked.of[i].type) % 16) return false;
    return !eight || (asked.what.op[0] == CUBLAS_OP_T && asked.what.op[1] == CUBLAS_OP_N &&
                      a.rows % 16 == 0 && c.rows % 16 == 0 && c.columns % 16 == 0 &&
                      !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2));
}

/* The matrix as floats, column-major with no gaps. */
std::vector<float> floats(const void *at, const layout &of) {
    std::vector<float> x((size_t)(of.rows * of.columns));
    for (int64_t j = 0; j < of.columns; j++)
        for (int64_t i = 0; i < of.rows; i++) {
            int64_t from = j * of.ld + i;
            x[(size_t)(j * of.rows + i)] = of.type == CUDA_R_32F    ? ((const float *)at)[from]
                                           : of.type == CUDA_R_16BF ? from_bf16(((const uint16_t *)at)[from])
                                           : of.type == CUDA_R_16F  ? from_fp16(((const uint16_t *)at)[from])
                                           : of.type == CUDA_R_8F_E4M3
                                               ? from_e4m3(((const uint8_t *)at)[from])
                                               : from_e5m2(((const uint8_t *)at)[from]);
        }
    return x;
}

void multiply(const question &asked, float alpha, const void *A, const void *B, float beta, float *C) {
    const layout &a = asked.of[0], &b = asked.of[1], &c = asked.of[2];
    bool turn_a = asked.what.op[0] == CUBLAS_OP_T, turn_b = asked.what.op[1] == CUBLAS_OP_T,
         plain = a.type == CUDA_R_32F;
    std::vector<float> x, y;
    if (!plain) {
        x = floats(A, a);
        y = floats(B, b);
    }
    for (const float *unit : asked.what.unit)
        if (unit) alpha *= *unit;
    cblas_sgemm(CblasColMajor, turn_a ? CblasTrans : CblasNoTrans, turn_b ? CblasTrans : CblasNoTrans,
                (int)c.rows, (int)c.columns, (int)(turn_a ? a.rows : a.columns), alpha,
                plain ? (const float *)A : x.data(), (int)(plain ? a.ld : a.rows),
                plain ? (const float *)B : y.data(), (int)(plain ? b.ld : b.rows), beta, C, (int)c.ld);
}

} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    blas_one_thread();
    *handle = (cublasLtHandle_t)1; /* there is nothing to keep */
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an invalid value (emulated cuBLASLt)";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "not supported (emulated cuBLASLt)";
    default:
        return "a failed call (emulated cuBLASLt)";
    }
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t opaque, cudaDataType type, uint64_t rows,
                                        uint64_t cols, int64_t ld) {
    return put(opaque, layout{type, (int64_t)rows, (int64_t)cols, ld});
}

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t opaque, cublasComputeType_t compute,
                                      cudaDataType_t scale) {
    return put(opaque, product{compute, scale, {CUBLAS_OP_N, CUBLAS_OP_N}, {NULL, NULL}});
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque,
                                              cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t bytes) {
    product it = inside<product>(opaque);
    bool turn = attribute == CUBLASLT_MATMUL_DESC_TRANSA || attribute == CUBLASLT_MATMUL_DESC_TRANSB;
    int side = attribute == CUBLASLT_MATMUL_DESC_TRANSB || attribute == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER;
    if (bytes != (turn ? sizeof it.op[0] : sizeof it.unit[0])) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(turn ? (void *)&it.op[side] : (void *)&it.unit[side], value, bytes);
    return put(opaque, it);
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t opaque) {
    return put(opaque, preference{0, 7, {256, 256, 256, 256}});
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
    preference it = inside<preference>(opaque);
    void *to = &it.workspace;
    size_t size = sizeof it.schemes;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        size = sizeof it.workspace;
    else
        to = attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
                 ? &it.schemes
                 : &it.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
    if (bytes != size) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return put(opaque, it);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t opaque, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *found) {
    question asked = question_of(desc, a, b, c, d);
    preference wish = inside<preference>(opaque);
    *found = 0;
    if (!consistent(asked) || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (!supported(asked, wish.alignment)) return CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm answer = {hash_of(asked), wish.workspace, {}};
    memcpy(answer.alignment, wish.alignment, sizeof answer.alignment);
    results[0] = {};
    results[0].workspaceSize = wish.workspace;
    *found = 1;
    return put(&results[0].algo, answer);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b,
                              const void *beta, const void *C, cublasLtMatrixLayout_t c, void *D,
                              cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    question asked = question_of(desc, a, b, c, d);
    algorithm answer = inside<algorithm>(algo);
    const void *at[] = {A, B, C, D};
    if (!consistent(asked) || answer.question != hash_of(asked) || C != D) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes < answer.workspace || (answer.workspace && !workspace))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)at[i] % answer.alignment[i]) return CUBLAS_STATUS_NOT_SUPPORTED;
    float by = *(const float *)alpha, keep = *(const float *)beta;
    cudaError_t error = emulated_enqueue(stream, "a product of cuBLASLt",
                                         [=] { multiply(asked, by, A, B, keep, (float *)D); });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
