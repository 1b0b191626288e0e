/* Operands of products from float to 16 or 8 bits.
 *
 * A block takes tiles of [TILE_ROWS, TILE_K], of which each thread writes eight numbers of a row at once.
 * Products of 8 bits demand rows along what is summed over: operands across memory are turned through shared
 * memory for them. */
#include "kernels/cuda/gemm.h"

#include <float.h>

#include "kernels/cuda/number.h"
#include "kernels/cuda/scale.h"

enum { EIGHT = 8, TILE_ROWS = 32, TILE_K = 64, THREADS = TILE_ROWS * TILE_K / EIGHT };

struct bf16 {
    enum { TURNS = 0 };
    typedef uint16_t code;
    static __device__ code of(float x) { return to_bf16(x); }
};
struct fp16 {
    enum { TURNS = 0 };
    typedef uint16_t code;
    static __device__ code of(float x) { return to_fp16(x); }
};
struct e4m3 {
    enum { TURNS = 1 };
    typedef uint8_t code;
    static __device__ code of(float x) { return to_e4m3(x); }
};
struct e5m2 {
    enum { TURNS = 1 };
    typedef uint8_t code;
    static __device__ code of(float x) { return to_e5m2(x); }
};

template <class Code> struct __align__(EIGHT * sizeof(Code)) eight {
    Code at[EIGHT];
};

/* Elements p … p + 7 of row i, zero where there are none. */
static __device__ void load_along(const struct operand *x, long i, long p, float v[EIGHT]) {
    const float *row = (const float *)x->at + i * x->ld + p;
    if (i < x->count && p + EIGHT <= x->k && (uintptr_t)row % sizeof(float4) == 0) {
        *(float4 *)v = ((const float4 *)row)[0];
        *(float4 *)(v + 4) = ((const float4 *)row)[1];
        return;
    }
    for (int j = 0; j < EIGHT; j++) v[j] = i < x->count && p + j < x->k ? row[j] : 0;
}

/* The same of a tile that begins at (i0, p0), for this thread's row and place. */
static __device__ void load_across(const struct operand *x, long i0, long p0, int row, int place,
                                   float v[EIGHT]) {
    __shared__ float tile[TILE_K][TILE_ROWS + 1];
    const float *at = (const float *)x->at;
    int lane = threadIdx.x % TILE_ROWS;
    __syncthreads(); /* the tile before may still be read */
    for (int p = threadIdx.x / TILE_ROWS; p < TILE_K; p += THREADS / TILE_ROWS)
        tile[p][lane] = i0 + lane < x->count && p0 + p < x->k ? at[(p0 + p) * x->ld + i0 + lane] : 0;
    __syncthreads();
    for (int j = 0; j < EIGHT; j++) v[j] = tile[place + j][row];
}

/* x·factor; what was finite stays so. */
static __device__ float scaled(float x, float factor) {
    float y = x * factor;
    return fabsf(x) <= FLT_MAX ? fmaxf(-FLT_MAX, fminf(y, FLT_MAX)) : y;
}

template <class Number>
static __global__ void narrow(struct operand x, long count_to, long k_to, typename Number::code *to,
                              float *largest) {
    const struct scale *scale = x.scale;
    if (x.partner && blockIdx.x + blockIdx.y + threadIdx.x == 0)
        *x.unit =
            fminf(scale->unit * x.partner->unit, 0x1p127f); /* beyond it what is not 0 is infinite, nearly */
    if (!to && scale->calls > 0) return;
    int row = threadIdx.x / (TILE_K / EIGHT), place = threadIdx.x % (TILE_K / EIGHT) * EIGHT;
    float factor = scale ? 1 / scale->unit : 1, most = 0;
    for (long i0 = (long)blockIdx.y * TILE_ROWS; i0 < count_to; i0 += (long)gridDim.y * TILE_ROWS)
        for (long p0 = (long)blockIdx.x * TILE_K; p0 < k_to; p0 += (long)gridDim.x * TILE_K) {
            float __align__(16) v[EIGHT];
            long i = i0 + row, p = p0 + place;
            if (!Number::TURNS || x.along)
                load_along(&x, i, p, v);
            else if constexpr (Number::TURNS)
                load_across(&x, i0, p0, row, place, v);
            if (scale)
                for (int j = 0; j < EIGHT; j++)
                    if (fabsf(v[j]) <= FLT_MAX) most = fmaxf(most, fabsf(v[j]));
            if (!to || i >= count_to || p >= k_to) continue;
            struct eight<typename Number::code> codes;
            for (int j = 0; j < EIGHT; j++) codes.at[j] = Number::of(scale ? scaled(v[j], factor) : v[j]);
            *(struct eight<typename Number::code> *)(to + i * k_to + p) = codes;
        }
    if (!scale) return;
    most = block_max(most);
    long block = (long)blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) largest[block] = fmaxf(largest[block], most); /* of several pieces */
}

template <class Number>
static void convert_to(const struct operand *x, long count_to, long k_to, void *to, float *largest) {
    long across = min(ceil_div(k_to, TILE_K), 32L);
    dim3 grid((unsigned)across, (unsigned)min(ceil_div(count_to, TILE_ROWS), MAX_BLOCKS / across));
    LAUNCH(narrow<Number>, grid, THREADS, 0, *x, count_to, k_to, (typename Number::code *)to, largest);
}

void convert(const struct operand *x, long count_to, long k_to, void *to, float *largest) {
    if (x->type == CUDA_R_16BF) convert_to<bf16>(x, count_to, k_to, to, largest);
    if (x->type == CUDA_R_16F) convert_to<fp16>(x, count_to, k_to, to, largest);
    if (x->type == CUDA_R_8F_E4M3) convert_to<e4m3>(x, count_to, k_to, to, largest);
    if (x->type == CUDA_R_8F_E5M2) convert_to<e5m2>(x, count_to, k_to, to, largest);
}

static __global__ void add_rows(long m, long n, float beta, const float *r, long ldr, float *c, long ldc) {
    for (long i = blockIdx.y; i < m; i += gridDim.y)
        for (long j = (long)blockIdx.x * blockDim.x + threadIdx.x; j < n; j += (long)gridDim.x * blockDim.x) {
            float was = beta == 0 ? 0 : beta * c[i * ldc + j];
            c[i * ldc + j] = was + (r ? r[i * ldr + j] : 0);
        }
}

void add_result(long m, long n, float beta, const float *r, long ldr, float *c, long ldc) {
    dim3 grid((unsigned)min(ceil_div(n, THREADS), 8L), (unsigned)min(m, 1024L));
    LAUNCH(add_rows, grid, THREADS, 0, m, n, beta, r, ldr, c, ldc);
}
