/* Causal attention by tiles: what the forward and backward pass share in every precision.
 *
 * A block has a tile of ROWS queries (or keys) in shared memory and walks over tiles of COLUMNS keys (or
 * queries). How a tile's products are computed, and which thread holds which of their elements, is a class
 * `tiles` of its own for each kind of arithmetic (attention_exact.h, attention_mma.h) with
 *
 *     element                        what shared memory holds
 *     source                         what tiles are loaded from: float, or copies in 16 bits
 *     STAGES                         tiles of COLUMNS at a time: with 2, one is loaded while another is used
 *     ROWS, COLUMNS, WIDTH           of tiles; WIDTH: the most of a head
 *     STRIDE                         distance of rows in shared memory
 *     ROWS_EACH, COLUMNS_EACH        of the scores [ROWS, COLUMNS] a thread holds this part
 *     WIDTH_EACH, RUN                and of sums [ROWS, WIDTH], RUN numbers in succession at a time
 *     row(i), column(j), place(j)    where they lie in a tile; `place` among WIDTH
 *     BLOCKS                         of a multiprocessor that its registers must suffice for
 *     LANES                          adjacent lanes that share rows
 *     first_row(), last_row()        of the warp
 *     padded(hd)                     the width that products run over
 *     load<HEIGHT>(to, s, from, ld, count)
 *                                    a whole block loads HEIGHT rows of a head, ld apart, of which `count`
 *                                    exist; the others are zero, as is what lies beyond the head's width
 *     loaded()                       a thread's own loads have arrived; a barrier tells the others
 *     scores(w, x, y, width)         w += x · yᵀ; x [ROWS, STRIDE], y [COLUMNS, STRIDE]
 *     collect(sum, w, scratch, y, width)
 *                                    sum += w · y; scratch: SCRATCH elements for all threads together
 *
 * Arrays with an index by thread live in registers, so loops over them are unrolled. */
#ifndef GDN_CUDA_ATTENTION_TILE_H
#define GDN_CUDA_ATTENTION_TILE_H

#include <math.h>

#include "kernels/cuda/copy_async.h"

enum {
    ATTENTION_THREADS = 128, /* in a block */
    ATTENTION_WARPS = ATTENTION_THREADS / WARP,
    ATTENTION_WIDEST = OPS_WIDEST_HEAD, /* head */
};

/* B sequences as the operations have them, or the queries and keys of one sequence's pieces. */
struct heads {
    long S, N;           /* queries and keys of each */
    long H, K;
    long key, ahead;     /* the first key's position, from which the first query is so far ahead: + S ≥ N */
    long ldq, ldkv, ldo; /* rows of queries, of keys and values, and of the gradients of each; of o and dout */
    long values;         /* from a key to its value, and so of their gradients */
    struct {
        long q, kv, o, values, head; /* the same of what tiles are loaded from; from head to head */
    } from;
    int hd;               /* width of a head */
    const int32_t *start; /* [B·S] the first position that each query sees, in a sequence never falling; NULL: 0 */
    bool quads;     /* everything may be read and written four numbers at a time */
    bool adds;      /* gradients are added to what is there */
    float scale;    /* 1/√hd */
    float exponent; /* scale · log2(e), as probabilities are computed as powers of two */
};

/* Tiles of ROWS in so many rows. */
template <class tiles> static __host__ __device__ inline long tiles_of(long rows) {
    return (rows + tiles::ROWS - 1) / tiles::ROWS;
}

/* Where queries and their gradients of head h of sequence b begin, keys of a group, outputs, and what there
 * is one of for each query, [B, H, S]. */
static __host__ __device__ inline long queries_at(const struct heads *s, long b, long h) {
    return b * s->S * s->ldq + h * s->hd;
}

static __host__ __device__ inline long keys_at(const struct heads *s, long b, long group) {
    return b * s->N * s->ldkv + group * s->hd;
}

static __host__ __device__ inline long outputs_at(const struct heads *s, long b, long h) {
    return b * s->S * s->ldo + h * s->hd;
}

static __host__ __device__ inline long sums_at(const struct heads *s, long b, long h) {
    return (b * s->H + h) * s->S;
}

/* The number of the first key that query `query` of sequence b sees; beyond the last one 0. */
static __device__ inline long start_of(const struct heads *s, long b, long query) {
    return s->start && query < s->S ? max(s->start[b * s->S + query] - s->key, 0l) : 0;
}

/* Stores what the threads hold of a tile of `count` rows, or adds it. */
template <class tiles>
static __device__ inline void store_tile(const float sum[tiles::ROWS_EACH][tiles::WIDTH_EACH],
                                         const struct heads *s, float *to, long ld, long count, bool adds) {
#pragma unroll
    for (int i = 0; i < tiles::ROWS_EACH; i++) {
        if (tiles::row(i) >= count) continue;
        float *row = to + tiles::row(i) * ld;
#pragma unroll
        for (int j = 0; j < tiles::WIDTH_EACH; j += tiles::RUN) {
            int at = tiles::place(j);
            float x[tiles::RUN];
#pragma unroll
            for (int r = 0; r < tiles::RUN; r++)
                x[r] = sum[i][j + r] + (adds && at + r < s->hd ? row[at + r] : 0);
            if (s->quads && at < s->hd) {
                if constexpr (tiles::RUN == 4)
                    *(float4 *)(row + at) = make_float4(x[0], x[1], x[2], x[3]);
                else
                    *(float2 *)(row + at) = make_float2(x[0], x[1]);
                continue;
            }
#pragma unroll
            for (int r = 0; r < tiles::RUN; r++)
                if (at + r < s->hd) row[at + r] = x[r];
        }
    }
}

/* The tiles' scratch lies behind the rest of a block's shared memory. */
template <class tiles, class memory>
static __device__ inline typename tiles::element *scratch_behind(memory *m) {
    return (typename tiles::element *)(m + 1);
}

/* Over the lanes that share a row, in a fixed order. */
template <class tiles> static __device__ inline float row_sum(float x) {
#pragma unroll
    for (int flip = tiles::LANES / 2; flip > 0; flip /= 2) x += __shfl_xor_sync(~0u, x, flip);
    return x;
}

template <class tiles> static __device__ inline float row_max(float x) {
#pragma unroll
    for (int flip = tiles::LANES / 2; flip > 0; flip /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, flip));
    return x;
}

#endif
