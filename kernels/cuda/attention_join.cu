/* Attention of the same queries on two sets of keys becomes that on both (Liu et al., "Ring Attention with Blockwise
 * Transformers", 2023).
 *
 * The floor: S·H·hd numbers of each are read, and of one written. */
#include "kernels/cuda/attention.h"

/* A warp for each row of a head [hd]. One of the two at least has seen a key. */
static __global__ void join_rows(struct heads s, const float *other, const float *other_lse, float *o, float *lse) {
    long row = (long)blockIdx.x * ATTENTION_WARPS + threadIdx.x / WARP;
    if (row >= s.S * s.H) return;
    long at = row % s.H * s.S + row / s.H;
    float a = lse[at], b = other_lse[at], apart = expf(-fabsf(a - b));
    float least = apart / (1 + apart), most = 1 / (1 + apart), keep = a > b ? most : least;
    __syncwarp(); /* all lanes have read it */
    if (threadIdx.x % WARP == 0) lse[at] = fmaxf(a, b) + log1pf(apart);
    for (int c = (int)threadIdx.x % WARP; c < s.hd; c += WARP)
        o[row * s.hd + c] = keep * o[row * s.hd + c] + (a > b ? least : most) * other[row * s.hd + c];
}

static void attention_join(long S, long H, long hd, const real *other, const real *other_lse, real *o, real *lse) {
    struct heads s = heads_of(S, H, H, hd, NULL, false);
    LAUNCH(join_rows, (unsigned)ceil_div(S * H, ATTENTION_WARPS), ATTENTION_THREADS, 0, s, other, other_lse, o, lse);
}

void cuda_attention_join(struct ops *ops) {
    ops->attention_join = attention_join;
}
