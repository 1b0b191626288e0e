/* Sums over all tokens, in double: blocks leave their parts in the workspace, [sums, parts], and
 * `finish_sums` adds them up. How many parts there are depends on shapes alone. */
#ifndef GDN_CUDA_DELTA_SUMS_H
#define GDN_CUDA_DELTA_SUMS_H

#include "kernels/cuda/cuda.h"

enum {
    SUM_THREADS = 256,
    SUM_PARTS = 1024, /* at most, of one sum: blocks enough to fill a GPU, few enough for one block to add */
};

/* Tokens or rows of each part, and how many parts that makes. */
static inline long rows_of_part(long T, long least) {
    long rows = ceil_div(T, SUM_PARTS);
    return rows < least ? least : rows;
}

/* sum[i] += factor · Σ_p part[i, p], one block a sum. */
template <typename N>
static __global__ void finish_sums(long parts, const double *part, double factor, N *sum) {
    double x = 0;
    for (long p = threadIdx.x; p < parts; p += blockDim.x) x += part[blockIdx.x * parts + p];
    x = block_sum(x);
    if (threadIdx.x == 0) sum[blockIdx.x] += (N)(factor * x);
}

#endif
