/* CUDA backend: tokens, rows of the embedding, and their gradients in token order without atomics: the
 * positions of equal tokens are brought together, in order, by counting for each position those that come
 * before it. */
#include "kernels/base/marks.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

static __global__ void cut_tokens_kernel(long T, long S, const int32_t *rows, int32_t *input,
                                         int32_t *target, real *counts) {
    for (long t = blockIdx.x * (long)blockDim.x + threadIdx.x; t < T; t += gridDim.x * (long)blockDim.x) {
        const int32_t *token = rows + t + t / S; /* every row has one more */
        if (input) input[t] = token[0] & MARK_TOKEN;
        if (target) target[t] = token[1] & MARK_UNCOUNTED ? -1 : token[1] & MARK_TOKEN;
        if (counts) counts[t] = token[0] & MARK_PADDING ? 0 : 1;
    }
}

enum { START_THREADS = 256 };

/* A block for each row: its threads look through a piece each, for the last start in it, and then take the nearest
 * of the pieces before. */
static __global__ void starts_kernel(long B, long S, const int32_t *rows, int32_t *start) {
    __shared__ int32_t last[START_THREADS];
    const long piece = ceil_div(S, START_THREADS), from = threadIdx.x * piece,
               to = from + piece < S ? from + piece : S;
    for (long b = blockIdx.x; b < B; b += gridDim.x) {
        const int32_t *row = rows + b * (S + 1);
        int32_t first = -1;
        for (long s = from; s < to; s++)
            if (row[s] & MARK_DOCUMENT) first = (int32_t)s;
        last[threadIdx.x] = first;
        __syncthreads();
        first = -1;
        for (int i = (int)threadIdx.x; i-- > 0 && first < 0;) first = last[i];
        if (first < 0) first = 0;
        for (long s = from; s < to; s++) {
            if (row[s] & MARK_DOCUMENT) first = (int32_t)s;
            start[b * S + s] = first;
        }
        __syncthreads(); /* the next row's may be written */
    }
}

static void cut_tokens(long B, long S, const int32_t *rows, int32_t *input, int32_t *target, int32_t *start,
                       real *counts) {
    const long threads = 256, most = 1024, blocks = ceil_div(B * S, threads);
    if (input || target || counts)
        LAUNCH(cut_tokens_kernel, (unsigned)(blocks < most ? blocks : most), (unsigned)threads, 0, B * S, S,
               rows, input, target, counts);
    if (start) LAUNCH(starts_kernel, (unsigned)(B < most ? B : most), START_THREADS, 0, B, S, rows, start);
}

static __global__ void embed_kernel(long T, long D, const int32_t *token, long first, long V, const real *E,
                                    real *x, bool aligned) {
    long at = tile_column();
    if (at >= D) return;
    EACH_TILE_ROW(t, T) {
        long row = token[t] - first;
        quad q = {};
        if (row >= 0 && row < V) q = load_quad(E + row * D + at, D - at, aligned);
        store_quad(x + t * D + at, D - at, aligned, q);
    }
}

static void embed(long T, long D, const int32_t *token, long first, long V, const real *E, real *x) {
    bool aligned = on_quads(E, D) && on_quads(x, D);
    LAUNCH(embed_kernel, tile_grid(T, D), tile_block(D), 0, T, D, token, first, V, E, x, aligned);
}

/* The positions of one token: order[first … first + count − 1]. */
struct run {
    int first, count;
};

enum { RUN_WARPS = 8 };

/* A warp has a position t: order [T] becomes the positions in order of their tokens, equal tokens in order of
 * positions; run[t], where t is its token's first position and the token is one of this part's, that token's;
 * elsewhere its count is 0. Sums of whole numbers in double are exact. */
static __global__ void runs_kernel(long T, const int32_t *token, long first, long V, int *order,
                                   struct run *run) {
    long t = (long)blockIdx.x * blockDim.y + threadIdx.y;
    if (t >= T) return;
    const int32_t own = token[t];
    int less = 0, equal = 0, earlier = 0;
    for (long i = threadIdx.x; i < T; i += WARP) {
        less += token[i] < own;
        equal += token[i] == own;
        earlier += token[i] == own && i < t;
    }
    less = (int)warp_sum((double)less);
    equal = (int)warp_sum((double)equal);
    earlier = (int)warp_sum((double)earlier);
    if (threadIdx.x != 0) return;
    order[less + earlier] = (int)t;
    bool leads = earlier == 0 && own >= first && own < first + V;
    run[t] = {less, leads ? equal : 0};
}

static __global__ void embed_back_kernel(long T, long D, const int32_t *token, long first, const int *order,
                                         const struct run *run, const real *dx, real *dE, bool aligned) {
    long at = tile_column();
    if (at >= D) return;
    EACH_TILE_ROW(t, T) {
        const struct run own = run[t];
        if (own.count == 0) continue;
        real *to = dE + (token[t] - first) * D + at;
        quad sum = load_quad(to, D - at, aligned);
        for (int i = 0; i < own.count; i++) {
            quad q = load_quad(dx + order[own.first + i] * D + at, D - at, aligned);
            for (int k = 0; k < 4; k++) sum.v[k] += q.v[k];
        }
        store_quad(to, D - at, aligned, sum);
    }
}

static void embed_back(long T, long D, const int32_t *token, long first, long V, const real *dx, real *dE) {
    struct run *run = (struct run *)workspace((size_t)T * (sizeof *run + sizeof(int)));
    int *order = (int *)(run + T);
    bool aligned = on_quads(dx, D) && on_quads(dE, D);
    LAUNCH(runs_kernel, (unsigned)ceil_div(T, RUN_WARPS), dim3(WARP, RUN_WARPS), 0, T, token, first, V, order,
           run);
    LAUNCH(embed_back_kernel, tile_grid(T, D), tile_block(D), 0, T, D, token, first, order, run, dx, dE,
           aligned);
}

extern "C" void cuda_embed(struct ops *ops) {
    ops->cut_tokens = cut_tokens;
    ops->embed = embed;
    ops->embed_back = embed_back;
}
