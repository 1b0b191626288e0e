/* The products of attention's tiles in fp32, with multiply-adds on registers: a thread holds ROWS/8 by
 * COLUMNS/16 scores. 16 lanes share rows. Rows in shared memory are 4 numbers longer than a head, so that
 * lanes that read four numbers each of successive rows hit different banks. */
#ifndef GDN_CUDA_ATTENTION_EXACT_H
#define GDN_CUDA_ATTENTION_EXACT_H

#include "kernels/cuda/attention_tile.h"

/* Four numbers of which `left` exist; the others are zero. */
static __device__ inline void load_four(float x[4], const float *from, int left, bool quads) {
    if (quads && left > 0) {
        float4 four = *(const float4 *)from;
        x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = i < left ? from[i] : 0;
}

template <int WIDTH_, int ROWS_, int COLUMNS_> struct exact_tiles {
    typedef float element, source;
    enum {
        STAGES = 1,
        WIDTH = WIDTH_,
        ROWS = ROWS_,
        COLUMNS = COLUMNS_,
        STRIDE = WIDTH + 4,
        LANES = 16,
        TEAMS = ATTENTION_THREADS / LANES,
        ROWS_EACH = ROWS / TEAMS,
        COLUMNS_EACH = COLUMNS / LANES,
        WIDTH_EACH = WIDTH / LANES,
        RUN = 4,
        BLOCKS = WIDTH > 64 ? 2 : 3,
        WEIGHTS = COLUMNS + 4, /* distance of rows in scratch */
        SCRATCH = ROWS * WEIGHTS,
    };

    static __device__ inline int lane(void) { return (int)threadIdx.x % LANES; }
    static __device__ inline int row(int i) { return (int)threadIdx.x / LANES + i * TEAMS; }
    static __device__ inline int column(int j) { return lane() + j * LANES; }
    static __device__ inline int place(int j) { return j / RUN * RUN * LANES + lane() * RUN + j % RUN; }
    static __device__ inline int first_row(void) { return 0; }
    static __device__ inline int last_row(void) { return ROWS - 1; }
    static __device__ inline int padded(int hd) { return (hd + 3) / 4 * 4; }

    template <int HEIGHT>
    static __device__ inline void load(float *to, const struct heads *s, const float *from, long ld,
                                       long count) {
        enum { QUADS = WIDTH / 4 };
        int width = padded(s->hd);
#pragma unroll 4
        for (int i = (int)threadIdx.x; i < HEIGHT * QUADS; i += ATTENTION_THREADS) {
            int row = i / QUADS, at = i % QUADS * 4;
            float x[4];
            load_four(x, from + row * ld + at, row < count ? s->hd - at : 0, s->quads);
            if (at < width) *(float4 *)(to + row * STRIDE + at) = make_float4(x[0], x[1], x[2], x[3]);
        }
    }
    static __device__ inline void loaded(void) {
        copies_arrived();
    }

    static __device__ inline void scores(float w[ROWS_EACH][COLUMNS_EACH], const float *x, const float *y,
                                         int width) {
        for (int at = 0; at < width; at += 4) {
            float4 a[ROWS_EACH];
#pragma unroll
            for (int i = 0; i < ROWS_EACH; i++) a[i] = *(const float4 *)(x + row(i) * STRIDE + at);
#pragma unroll
            for (int j = 0; j < COLUMNS_EACH; j++) {
                float4 b = *(const float4 *)(y + column(j) * STRIDE + at);
#pragma unroll
                for (int i = 0; i < ROWS_EACH; i++)
                    w[i][j] =
                        fmaf(a[i].w, b.w, fmaf(a[i].z, b.z, fmaf(a[i].y, b.y, fmaf(a[i].x, b.x, w[i][j]))));
            }
        }
    }

    /* A row's weights are needed by the 16 lanes that have computed them, so the warp alone has to meet. */
    static __device__ inline void collect(float sum[ROWS_EACH][WIDTH_EACH],
                                          const float w[ROWS_EACH][COLUMNS_EACH], float *scratch,
                                          const float *y, int width) {
        __syncwarp(); /* everybody is done with what lay there before */
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS_EACH; j++) scratch[row(i) * WEIGHTS + column(j)] = w[i][j];
        __syncwarp();
        for (int k = 0; k < COLUMNS; k += 4) {
            float4 a[ROWS_EACH];
#pragma unroll
            for (int i = 0; i < ROWS_EACH; i++) a[i] = *(const float4 *)(scratch + row(i) * WEIGHTS + k);
#pragma unroll
            for (int j = 0; j < WIDTH_EACH; j += RUN) {
                if (j * LANES >= width || IDLE(place(j) >= width)) continue;
                const float *at = y + k * STRIDE + place(j);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float4 b = *(const float4 *)(at + i * STRIDE);
#pragma unroll
                    for (int r = 0; r < ROWS_EACH; r++) {
                        float factor = i == 0 ? a[r].x : i == 1 ? a[r].y : i == 2 ? a[r].z : a[r].w;
                        sum[r][j] = fmaf(factor, b.x, sum[r][j]);
                        sum[r][j + 1] = fmaf(factor, b.y, sum[r][j + 1]);
                        sum[r][j + 2] = fmaf(factor, b.z, sum[r][j + 2]);
                        sum[r][j + 3] = fmaf(factor, b.w, sum[r][j + 3]);
                    }
                }
            }
        }
    }
};

#endif
