/* Attention of one new token on cached keys and values. Each warp takes a stretch of the cache for one query
 * head, with an online softmax of its own; a second kernel puts the stretches together in order. So a single
 * token fills the GPU: there are up to PARTS stretches a head.
 *
 * The floor: 4·length·H·hd FLOP and 8·length·K·hd bytes; it is bound by memory, so products need no tensor
 * cores, but their operands are rounded as theirs are. */
#include "kernels/cuda/attention.h"

enum {
    STEP = WARP,                             /* keys a warp's softmax goes on by: one a lane */
    PARTS = 128,                             /* of the cache, the most */
    WIDTH_OF_LANE = ATTENTION_WIDEST / WARP, /* numbers of a head that a lane holds */
};

/* What a stretch of keys comes to: sum [hd] = Σ weight·value, weight = 2^(score − largest). In memory
 * [H, parts, hd + 2]: the sum, then the largest score in units of log 2, then Σ weight. */
static __device__ inline float *part_at(float *parts, const struct heads *s, long count, long h, long part) {
    return parts + (h * count + part) * (s->hd + 2);
}

/* keys and values [length, K·hd]. A warp for each head and part of `stretch` keys. */
template <enum precision P>
static __global__ void decode_parts(struct heads s, long length, long stretch, const float *q,
                                    const float *keys, const float *values, float *parts) {
    long count = (length + stretch - 1) / stretch,
         unit = (long)blockIdx.x * ATTENTION_WARPS + threadIdx.x / WARP;
    long h = unit / count, part = unit % count, ld = s.K * s.hd, at = h / (s.H / s.K) * s.hd;
    int lane = (int)threadIdx.x % WARP;
    if (h >= s.H) return;
    float query[WIDTH_OF_LANE], out[WIDTH_OF_LANE]; /* of the head the numbers lane + 32·c */
    float largest = -INFINITY, sum = 0;
#pragma unroll
    for (int c = 0; c < WIDTH_OF_LANE; c++) {
        query[c] = lane + c * WARP < s.hd ? rounded<P>(q[h * s.hd + lane + c * WARP]) : 0;
        out[c] = 0;
    }
    long end = min((part + 1) * stretch, length);
    for (long first = part * stretch; first < end; first += STEP) {
        int there = (int)min(end - first, (long)STEP);
        float score = -INFINITY; /* of key first + lane */
#pragma unroll 4
        for (int i = 0; i < there; i++) {
            const float *key = keys + (first + i) * ld + at;
            float product = 0;
#pragma unroll
            for (int c = 0; c < WIDTH_OF_LANE; c++)
                if (lane + c * WARP < s.hd)
                    product = fmaf(query[c], rounded<P>(key[lane + c * WARP]), product);
            product = warp_sum(product);
            if (lane == i) score = product * s.exponent;
        }
        float before = largest;
        largest = fmaxf(before, warp_max(score));
        float shrink = exp2f(before - largest), weight = exp2f(score - largest);
        sum = sum * shrink + warp_sum(weight);
        weight = rounded<P>(weight);
#pragma unroll
        for (int c = 0; c < WIDTH_OF_LANE; c++) out[c] *= shrink;
#pragma unroll 4
        for (int i = 0; i < there; i++) {
            const float *value = values + (first + i) * ld + at;
            float factor = __shfl_sync(~0u, weight, i);
#pragma unroll
            for (int c = 0; c < WIDTH_OF_LANE; c++)
                if (lane + c * WARP < s.hd) out[c] = fmaf(factor, rounded<P>(value[lane + c * WARP]), out[c]);
        }
    }
    float *to = part_at(parts, &s, count, h, part);
#pragma unroll
    for (int c = 0; c < WIDTH_OF_LANE; c++)
        if (lane + c * WARP < s.hd) to[lane + c * WARP] = out[c];
    if (lane == 0) to[s.hd] = largest, to[s.hd + 1] = sum;
}

/* A block for each head. */
static __global__ void decode_together(struct heads s, long count, float *parts, float *o) {
    long h = blockIdx.x;
    float largest = -INFINITY, sum = 0;
    for (long i = 0; i < count; i++) largest = fmaxf(largest, part_at(parts, &s, count, h, i)[s.hd]);
    for (long i = 0; i < count; i++) {
        const float *part = part_at(parts, &s, count, h, i);
        sum += part[s.hd + 1] * exp2f(part[s.hd] - largest);
    }
    for (int c = (int)threadIdx.x; c < s.hd; c += ATTENTION_THREADS) {
        float out = 0;
        for (long i = 0; i < count; i++) {
            const float *part = part_at(parts, &s, count, h, i);
            out = fmaf(part[c], exp2f(part[s.hd] - largest), out);
        }
        o[h * s.hd + c] = out / sum;
    }
}

template <enum precision P>
static void attention_decode(long length, long H, long K, long hd, const real *q, const real *keys,
                             const real *values, real *o) {
    if (too_wide(hd)) return;
    long stretch = ceil_div(ceil_div(length, PARTS), STEP) * STEP, count = ceil_div(length, stretch);
    struct heads s = heads_of(length, H, K, hd, NULL, false);
    float *parts = (float *)workspace((size_t)(H * count * (hd + 2)) * sizeof(float));
    LAUNCH(decode_parts<P>, (unsigned)ceil_div(H * count, ATTENTION_WARPS), ATTENTION_THREADS, 0, s, length,
           stretch, q, keys, values, parts);
    LAUNCH(decode_together, (unsigned)H, ATTENTION_THREADS, 0, s, count, parts, o);
}

void cuda_attention_decode(struct ops *ops, enum precision precision) {
    ops->attention_decode = IN_PRECISION(precision, attention_decode);
}
