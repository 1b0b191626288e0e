/* Four neighbouring elements, the piece of a row or vector that a thread reads and writes at once: 16 bytes
 * in one access where the rows lie on 16-byte boundaries, else one by one. Which thread has which elements
 * does not depend on the alignment, and so no sum's order does. */
#ifndef GDN_CUDA_QUAD_H
#define GDN_CUDA_QUAD_H

#include "kernels/cuda/cuda.h"

struct quad {
    real v[4];
};

/* Whether x lies on a 16-byte boundary, and all rows that are a multiple of `distance` elements behind it. */
static inline bool on_quads(const real *x, long distance) {
    return (uintptr_t)x % (4 * sizeof(real)) == 0 && distance % 4 == 0;
}

/* The elements x[0 … 3], of which those from `left` on do not exist and are read as `missing`. aligned:
 * on_quads. */
static __device__ inline quad load_quad(const real *x, long left, bool aligned, real missing = 0) {
    quad q;
    if (aligned && left >= 4) {
        float4 four = *(const float4 *)x;
        q.v[0] = four.x, q.v[1] = four.y, q.v[2] = four.z, q.v[3] = four.w;
    } else {
        for (int i = 0; i < 4; i++) q.v[i] = i < left ? x[i] : missing;
    }
    return q;
}

static __device__ inline void store_quad(real *x, long left, bool aligned, const quad &q) {
    if (aligned && left >= 4)
        *(float4 *)x = make_float4(q.v[0], q.v[1], q.v[2], q.v[3]);
    else
        for (int i = 0; i < 4; i++)
            if (i < left) x[i] = q.v[i];
}

/* Long vectors: the elements at, at + 1, at + 2, at + 3 for each `at` of this thread, from LAUNCH(kernel,
 * vector_grid(n), VECTOR_BLOCK, …). */
enum { VECTOR_BLOCK = 256, VECTOR_GRID = 2048 /* more than any GPU holds at once */ };

static inline unsigned vector_grid(long n) {
    long blocks = ceil_div(n, 4 * VECTOR_BLOCK), most = VECTOR_GRID;
    return (unsigned)(blocks < most ? blocks : most);
}

#define EACH_QUAD(at, n)                                                                                     \
    for (long at = 4 * ((long)blockIdx.x * blockDim.x + threadIdx.x); at < (n);                              \
         at += 4 * (long)gridDim.x * blockDim.x)

#endif
