/* One product by cuBLASLt, which is column-major: a row-major C = A·B is to it Cᵀ = Bᵀ·Aᵀ with the same
 * memory, so the operands change places.
 *
 * The library is asked once for each shape how it would make the product, and the answer is kept in a table
 * of a fixed size: the first step of a run fills it. A run with more than MAX_SHAPES shapes is slower, as
 * those beyond are asked for at each call, and no less correct. Sums that are split over k are only allowed
 * where their parts are added in a fixed order. */
#include "kernels/base/hash.h"
#include "kernels/cuda/gemm.h"

#include <string.h>

enum {
    MAX_SHAPES = 1024,
    PLACES = 2 * MAX_SHAPES,  /* of the table, a power of two */
    LIBRARY_BYTES = 32 << 20, /* what it gets to work with */
};

static cublasLtHandle_t handle;
static void *library_workspace;

/* All that an answer depends on; compared as bytes, hence of one type. Index 0: what the library calls A. */
struct shape {
    int64_t m, n, k;
    int64_t transposed[2], type[2], ld[2], alignment[2];
    int64_t ldc, alignment_c;
};

struct answer {
    struct shape shape; /* m 0: an empty place */
    cublasLtMatmulAlgo_t algo;
};
static struct answer answers[PLACES];
static int shapes;

void *reserve(size_t bytes) {
    void *memory = cuda_reserve(bytes);
    if (!memory) cuda_fail("no memory for %zu bytes of matrix products' scratch", bytes);
    return memory;
}

static bool good(cublasStatus_t status, const char *what) {
    if (status != CUBLAS_STATUS_SUCCESS)
        cuda_fail("cuBLASLt cannot %s: %s", what, cublasLtGetStatusString(status));
    return status == CUBLAS_STATUS_SUCCESS;
}

void library_open(void) {
    if (handle || !good(cublasLtCreate(&handle), "start")) return;
    library_workspace = reserve(LIBRARY_BYTES);
}

/* As far as the library's kernels care, and no further: where a buffer happens to lie must not choose another
 * algorithm, which might round otherwise. */
static int64_t alignment(const void *at) {
    uintptr_t lowest = (uintptr_t)at & -(uintptr_t)at;
    return lowest > 16 ? 16 : (int64_t)lowest;
}

/* The place of a shape in the table, or the empty one where it belongs. */
static struct answer *place_of(const struct shape *shape) {
    for (uint64_t at = hash_words((const int64_t *)shape, sizeof *shape / sizeof(int64_t));; at++) {
        struct answer *answer = &answers[at % PLACES];
        if (answer->shape.m == 0 || memcmp(&answer->shape, shape, sizeof *shape) == 0) return answer;
    }
}

struct call {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t a, b, c;
};

/* A column-major matrix as the library has it: rows and columns as stored, which `transposed` turns round. */
static cublasStatus_t lay_out(cublasLtMatrixLayout_t layout, int64_t type, int64_t rows, int64_t columns,
                              int64_t transposed, int64_t ld) {
    return cublasLtMatrixLayoutInit(layout, (cudaDataType_t)type, (uint64_t)(transposed ? columns : rows),
                                    (uint64_t)(transposed ? rows : columns), ld);
}

static bool describe(const struct shape *shape, const float *const unit[2], struct call *call) {
    static const cublasLtMatmulDescAttributes_t turn[] = {CUBLASLT_MATMUL_DESC_TRANSA,
                                                          CUBLASLT_MATMUL_DESC_TRANSB},
                                                units[] = {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                                           CUBLASLT_MATMUL_DESC_B_SCALE_POINTER};
    cublasLtMatmulDesc_t product = &call->product;
    bool fine = good(cublasLtMatmulDescInit(product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product");
    for (int side = 0; side < 2; side++) {
        int32_t op = shape->transposed[side] ? CUBLAS_OP_T : CUBLAS_OP_N;
        fine = fine && good(cublasLtMatmulDescSetAttribute(product, turn[side], &op, sizeof op), "transpose");
        if (unit[side])
            fine = fine &&
                   good(cublasLtMatmulDescSetAttribute(product, units[side], &unit[side], sizeof unit[side]),
                        "scale");
    }
    return fine &&
           good(lay_out(&call->a, shape->type[0], shape->m, shape->k, shape->transposed[0], shape->ld[0]),
                "take A") &&
           good(lay_out(&call->b, shape->type[1], shape->k, shape->n, shape->transposed[1], shape->ld[1]),
                "take B") &&
           good(lay_out(&call->c, CUDA_R_32F, shape->m, shape->n, 0, shape->ldc), "take C");
}

static bool ask(const struct shape *shape, struct call *call, cublasLtMatmulAlgo_t *algo) {
    cublasLtMatmulPreferenceOpaque_t preference;
    uint64_t bytes = LIBRARY_BYTES;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, a = (uint32_t)shape->alignment[0],
             b = (uint32_t)shape->alignment[1], c = (uint32_t)shape->alignment_c;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t bytes;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof c},
    };
    bool fine = good(cublasLtMatmulPreferenceInit(&preference), "be told preferences");
    for (const auto &wish : wishes)
        fine = fine &&
               good(cublasLtMatmulPreferenceSetAttribute(&preference, wish.attribute, wish.value, wish.bytes),
                    "be told a preference");
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    if (!fine) return false;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, &call->product, &call->a, &call->b, &call->c, &call->c, &preference, 1, &result, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    *algo = result.algo;
    return good(status, "multiply such matrices");
}

/* What the library would do; NULL: nothing. Good until the next call. */
static const cublasLtMatmulAlgo_t *algorithm(const struct shape *shape, struct call *call) {
    static cublasLtMatmulAlgo_t beyond;
    struct answer *answer = place_of(shape);
    if (answer->shape.m > 0) return &answer->algo;
    if (shapes == MAX_SHAPES) return ask(shape, call, &beyond) ? &beyond : NULL;
    if (!ask(shape, call, &answer->algo)) return NULL;
    answer->shape = *shape;
    shapes++;
    return &answer->algo;
}

void library_product(char ta, char tb, long m, long n, long k, float alpha, const struct factor *a,
                     const struct factor *b, float beta, float *c, long ldc) {
    struct shape shape = {n,
                          m,
                          k,
                          {tb == 'T', ta == 'T'},
                          {b->type, a->type},
                          {b->ld, a->ld},
                          {alignment(b->at), alignment(a->at)},
                          ldc,
                          alignment(c)};
    const float *unit[2] = {b->unit, a->unit};
    struct call call;
    const cublasLtMatmulAlgo_t *algo;
    if (!handle || !describe(&shape, unit, &call) || !(algo = algorithm(&shape, &call))) return;
    good(cublasLtMatmul(handle, &call.product, &alpha, b->at, &call.a, a->at, &call.b, &beta, c, &call.c, c,
                        &call.c, algo, library_workspace, LIBRARY_BYTES, cuda_stream()),
         "multiply");
}
