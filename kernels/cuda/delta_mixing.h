/* Softmax weights over the n connections into a layer, n at most OPS_CONNECTIONS, for the aggregates
 * `attention` and `multihead`. A warp has one token, or one token's head; its n numbers lie in shared memory.
 * Memory is passed once: what is read again is a token's query and keys, which the nearest cache then has. */
#ifndef GDN_CUDA_DELTA_MIXING_H
#define GDN_CUDA_DELTA_MIXING_H

#include "kernels/cuda/rows.h"

enum { WARPS_OF_BLOCK = 4 };

/* A number a connection of the warp; lane i % WARP writes number i. */
typedef real connection_numbers[OPS_CONNECTIONS];

#define EACH_OWN_CONNECTION(i, n) for (long i = threadIdx.x; i < (n); i += WARP)

/* x·y, which the whole warp receives. */
static __device__ inline real dot(long n, const real *x, const real *y, bool aligned) {
    real sum = 0;
    EACH_TEAM_QUAD(at, n) {
        quad a = load_quad(x + at, n - at, aligned), b = load_quad(y + at, n - at, aligned);
        for (int i = 0; i < 4; i++) sum += a.v[i] * b.v[i];
    }
    return warp_sum(sum);
}

/* The lane of connection i keeps a number that the whole warp has. */
static __device__ inline void keep(real *x, long i, real value) {
    if (threadIdx.x == i % WARP) x[i] = value;
}

/* Softmax of the warp's n numbers, in place. */
static __device__ inline void softmax(long n, real *x) {
    real largest = -INFINITY, sum = 0;
    EACH_OWN_CONNECTION(i, n) largest = fmaxf(largest, x[i]);
    largest = warp_max(largest);
    EACH_OWN_CONNECTION(i, n) {
        x[i] = expf(x[i] - largest);
        sum += x[i];
    }
    sum = warp_sum(sum);
    EACH_OWN_CONNECTION(i, n) x[i] /= sum;
    __syncwarp();
}

/* Backward of n scores query·key_i: query [width] and the keys, `ld` apart, become their gradients. */
static __device__ inline void scores_back(long n, long width, const real *dscore, real *query, real *key,
                                          long ld, bool aligned) {
    EACH_TEAM_QUAD(at, width) {
        long left = width - at;
        quad q = load_quad(query + at, left, aligned), dq = {};
        for (long i = 0; i < n; i++) {
            quad k = load_quad(key + i * ld + at, left, aligned);
            for (int j = 0; j < 4; j++) {
                dq.v[j] += dscore[i] * k.v[j];
                k.v[j] = dscore[i] * q.v[j];
            }
            store_quad(key + i * ld + at, left, aligned, k);
        }
        store_quad(query + at, left, aligned, dq);
    }
}

/* A warp for each of so many rows. */
static inline unsigned warps_grid(long rows) {
    return (unsigned)ceil_div(rows, WARPS_OF_BLOCK);
}

static inline dim3 warps_block(void) {
    return dim3(WARP, WARPS_OF_BLOCK);
}

/* The operations multihead and multihead_back (delta_multihead.cu). */
void cuda_delta_multihead(struct ops *ops);

#endif
