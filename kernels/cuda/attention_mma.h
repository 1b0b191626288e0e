/* The products of attention's tiles on tensor cores (mma.h), from copies of the operands in bf16 or fp16
 * (attention_copy.cu), which reach shared memory while threads go on (copy_async.h). A warp has ROWS/4
 * successive rows. Scores, once rounded, are the left operand of the second product in the very lanes that
 * hold them, so they never leave registers. Rows in shared memory are 8 numbers longer than a head, so that
 * the 8 rows of a small matrix lie in different banks. Heads are padded with zeros to WIDTH: with loops of a
 * width known beforehand, and without a branch in them, loads run ahead of the products. */
#ifndef GDN_CUDA_ATTENTION_MMA_H
#define GDN_CUDA_ATTENTION_MMA_H

#include "kernels/cuda/attention_tile.h"
#include "kernels/cuda/mma.h"

template <enum precision P, int WIDTH_, int ROWS_, int COLUMNS_> struct mma_tiles {
    typedef uint16_t element, source;
    enum {
        WIDTH = WIDTH_,
        STAGES = WIDTH > 128 ? 1 : 2, /* as shared memory allows */
        ROWS = ROWS_,
        COLUMNS = COLUMNS_,
        STRIDE = WIDTH + 8,
        LANES = 4,
        ROWS_OF_WARP = ROWS / ATTENTION_WARPS,
        HEIGHT = ROWS_OF_WARP / 16, /* fragments, one below the other */
        ROWS_EACH = HEIGHT * 2,
        COLUMNS_EACH = COLUMNS / LANES,
        WIDTH_EACH = WIDTH / LANES,
        RUN = 2,
        BLOCKS = 2,
        SCRATCH = 0,
    };

    static __device__ inline int lane(void) { return (int)threadIdx.x % WARP; }
    static __device__ inline int first_row(void) { return (int)threadIdx.x / WARP * ROWS_OF_WARP; }
    static __device__ inline int last_row(void) { return first_row() + ROWS_OF_WARP - 1; }
    static __device__ inline int row(int i) { return first_row() + i * 8 + lane() / 4; }
    static __device__ inline int column(int j) { return j / 2 * 8 + lane() % 4 * 2 + j % 2; }
    static __device__ inline int place(int j) { return column(j); }
    /* Elsewhere than on a GPU products run over no more than the head. */
    static __device__ inline int padded(int hd) {
#ifdef __CUDACC__
        return WIDTH;
#else
        return (hd + 15) / 16 * 16;
#endif
    }

    template <int HEIGHT>
    static __device__ inline void load(uint16_t *to, const struct heads *, const uint16_t *from, long ld,
                                       long count) {
        enum { EIGHTS = WIDTH / 8, STEP = ATTENTION_THREADS / EIGHTS };
        int first = (int)threadIdx.x / EIGHTS, at = (int)threadIdx.x % EIGHTS * 8;
        int there = (int)min(count, (long)HEIGHT);
        from += first * ld + at, to += first * STRIDE + at;
#pragma unroll
        for (int i = 0; i < HEIGHT; i += STEP)
            copy_async<16>(to + i * STRIDE, from + i * ld, first + i < there);
    }
    static __device__ inline void loaded(void) {
        copies_arrived();
    }

    /* sum's 16 rows from 2·i on and its 8 columns from 2·j on += a · b. N: columns a thread holds. */
    template <int N>
    static __device__ inline void multiply(float sum[ROWS_EACH][N], int i, int j, const uint32_t a[4],
                                           uint32_t b0, uint32_t b1) {
        float c[4] = {sum[2 * i][2 * j], sum[2 * i][2 * j + 1], sum[2 * i + 1][2 * j],
                      sum[2 * i + 1][2 * j + 1]};
        const uint32_t b[2] = {b0, b1};
        mma_16x8x16<P>(c, a, b);
        sum[2 * i][2 * j] = c[0], sum[2 * i][2 * j + 1] = c[1];
        sum[2 * i + 1][2 * j] = c[2], sum[2 * i + 1][2 * j + 1] = c[3];
    }

    static __device__ inline void scores(float w[ROWS_EACH][COLUMNS_EACH], const uint16_t *x,
                                         const uint16_t *y, int width) {
#pragma unroll
        for (int at = 0; at < width; at += 16) {
            uint32_t a[HEIGHT][4];
#pragma unroll
            for (int i = 0; i < HEIGHT; i++)
                load_16x16<false>(a[i], x + (first_row() + i * 16) * STRIDE + at, STRIDE);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 16) {
                uint32_t b[4];
                load_16x16<false>(b, y + j * STRIDE + at, STRIDE);
#pragma unroll
                for (int i = 0; i < HEIGHT; i++) {
                    multiply(w, i, j / 8, a[i], b[0], b[2]);
                    multiply(w, i, j / 8 + 1, a[i], b[1], b[3]);
                }
            }
        }
    }

    static __device__ inline void collect(float sum[ROWS_EACH][WIDTH_EACH],
                                          const float w[ROWS_EACH][COLUMNS_EACH], uint16_t *,
                                          const uint16_t *y, int width) {
#pragma unroll
        for (int k = 0; k < COLUMNS; k += 16) {
            uint32_t a[HEIGHT][4];
#pragma unroll
            for (int i = 0; i < HEIGHT; i++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const float *two = &w[2 * i + r % 2][k / 4 + r / 2 * 2];
                    a[i][r] = pair<P>(two[0], two[1]);
                }
#pragma unroll
            for (int j = 0; j < WIDTH; j += 16) {
                if (j >= width) continue;
                uint32_t b[4];
                load_16x16<true>(b, y + k * STRIDE + j, STRIDE);
#pragma unroll
                for (int i = 0; i < HEIGHT; i++) {
                    multiply(sum, i, j / 8, a[i], b[0], b[1]);
                    multiply(sum, i, j / 8 + 1, a[i], b[2], b[3]);
                }
            }
        }
    }
};

#endif
