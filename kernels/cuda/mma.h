/* Products of 16 × 16 by 16 × 8 numbers of 16 bits on a warp's tensor cores, summed in fp32, and what lies
 * around them: rounding operands and loading them from shared memory.
 *
 * A warp holds a matrix as fragments, a few registers a lane (PTX ISA, "Matrix fragments for mma.m16n8k16"
 * and "ldmatrix"). With g = lane / 4 and t = lane % 4:
 *
 *     A [16, 16]  a[0]: A[g][2t, 2t+1]    a[1]: A[g+8][2t, 2t+1]    a[2], a[3]: the same, 8 columns on
 *     B [16, 8]   b[0]: B[2t, 2t+1][g]    b[1]: B[2t+8, 2t+9][g]
 *     C [16, 8]   c[0], c[1]: C[g][2t, 2t+1]    c[2], c[3]: C[g+8][2t, 2t+1]
 *
 * of which each 32-bit register has the first number in its low half. Two C side by side are, once rounded,
 * an A.
 *
 * Elsewhere than on a GPU the two instructions are computed from the same registers of the same lanes:
 * products are exact, sums are rounded to fp32 one after another. A GPU adds in an order of its own and may
 * cut off bits below fp32's last; for given operands it does so the same way every time. */
#ifndef GDN_MMA_H
#define GDN_MMA_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/number.h"

/* A number as it enters a product: in 16 bits, and as the float it then is. */
template <enum precision P> static __device__ inline uint16_t narrowed(float x) {
    return P == PRECISION_FP16 ? to_fp16(x) : to_bf16(x);
}

template <enum precision P> static __device__ inline float widened(uint16_t x) {
    return P == PRECISION_FP16 ? from_fp16(x) : from_bf16(x);
}

template <enum precision P> static __device__ inline float rounded(float x) {
    return P == PRECISION_FP32 ? x : widened<P>(narrowed<P>(x));
}

/* Two numbers in one register. */
template <enum precision P> static __device__ inline uint32_t pair(float low, float high) {
#ifdef __CUDA_ARCH__
    uint32_t both;
    if (P == PRECISION_FP16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return narrowed<P>(low) | (uint32_t)narrowed<P>(high) << 16;
#endif
}

#ifdef __CUDACC__

template <enum precision P>
static __device__ inline void mma_16x8x16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    if (P == PRECISION_FP16)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, "
                     "%7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four matrices of 8 × 8; lane 8i + j has the address of row j of matrix i in shared memory. r[i] is of
 * matrix i, as it is stored or transposed. */
template <bool TRANSPOSED> static __device__ inline void load_matrices(uint32_t r[4], const uint16_t *row) {
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}

#else

enum { MMA_MAX_WARPS = 32 };

/* The two numbers of each of `count` registers. */
template <enum precision P> static inline void unpack(int count, const uint32_t *r, float *x) {
    for (int i = 0; i < 2 * count; i++) x[i] = widened<P>((uint16_t)(r[i / 2] >> i % 2 * 16));
}

template <enum precision P> static void mma_16x8x16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    static struct { float a[8], b[4]; } all[MMA_MAX_WARPS][WARP];
    auto *warp = all[threadIdx.x / WARP];
    int lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    unpack<P>(4, a, warp[lane].a);
    unpack<P>(2, b, warp[lane].b);
    __syncwarp();
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 4; i++) { /* c[i] is C[g + i/2·8][2t + i%2] */
            float x = warp[4 * g + k % 8 / 2].a[i / 2 * 2 + k / 8 * 4 + k % 2];
            float y = warp[4 * (2 * t + i % 2) + k % 8 / 2].b[k / 8 * 2 + k % 2];
            c[i] = fmaf(x, y, c[i]);
        }
    __syncwarp();
}

template <bool TRANSPOSED> static void load_matrices(uint32_t r[4], const uint16_t *row) {
    static const uint16_t *all[MMA_MAX_WARPS][WARP];
    const uint16_t **rows = all[threadIdx.x / WARP];
    int lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    rows[lane] = row;
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        const uint16_t **matrix = rows + 8 * i;
        uint16_t low = TRANSPOSED ? matrix[2 * t][g] : matrix[g][2 * t];
        uint16_t high = TRANSPOSED ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
        r[i] = low | (uint32_t)high << 16;
    }
    __syncwarp();
}

#endif

/* The 16 × 16 numbers at `tile` in shared memory, rows `stride` apart, a multiple of 8 numbers. As they are
 * stored: r is the fragment A of the matrix X that lies there; and the fragments B of Xᵀ's columns 0 … 7 are
 * r[0] and r[2], of 8 … 15 r[1] and r[3]. Transposed: the fragments B of X's columns 0 … 7 are r[0] and r[1],
 * of 8 … 15 r[2] and r[3]. */
template <bool TRANSPOSED>
static __device__ inline void load_16x16(uint32_t r[4], const uint16_t *tile, int stride) {
    int lane = (int)threadIdx.x % WARP;
    load_matrices<TRANSPOSED>(r, tile + lane % 16 * stride + lane / 16 * 8);
}

#endif
