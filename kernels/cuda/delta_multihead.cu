/* CUDA operations of the aggregate `multihead`, a warp for each token's head. */
#include "kernels/cuda/delta_mixing.h"

/* Row t·heads + h of token t and head h: where its columns begin in [T, D], and in [T, n, D] those of
 * connection 0. */
struct head {
    long t, h, column, connection;
};

static __device__ inline struct head head_of(long row, long n, long D, long heads) {
    long t = (unsigned)row / (unsigned)heads, h = row - t * heads, column = h * (D / heads);
    return {t, h, t * D + column, t * n * D + column};
}

static bool heads_on_quads(const real *x, long D, long heads) {
    return on_quads(x, D / heads) && on_quads(x, D);
}

/* 8·n·D bytes a token, and 12·D. */
static __global__ void multihead_kernel(long T, long n, long D, long heads, const real *__restrict__ query,
                                        const real *__restrict__ key, const real *__restrict__ c, real root,
                                        real *__restrict__ weight, real *__restrict__ z, bool aligned) {
    __shared__ connection_numbers of_warp[WARPS_OF_BLOCK];
    real *w = of_warp[threadIdx.y];
    long width = D / heads;
    EACH_TEAM_ROW(row, T * heads) {
        struct head here = head_of(row, n, D, heads);
        for (long i = 0; i < n; i++)
            keep(w, i, dot(width, query + here.column, key + here.connection + i * D, aligned) * root);
        softmax(n, w);
        EACH_OWN_CONNECTION(i, n) weight[(here.t * n + i) * heads + here.h] = w[i];
        EACH_TEAM_QUAD(at, width) {
            long left = width - at;
            quad sum = load_quad(z + here.column + at, left, aligned);
            for (long i = 0; i < n; i++) {
                quad x = load_quad(c + here.connection + i * D + at, left, aligned);
                for (int j = 0; j < 4; j++) sum.v[j] += w[i] * x.v[j];
            }
            store_quad(z + here.column + at, left, aligned, sum);
        }
        __syncwarp();
    }
}

static void multihead(long T, long n, long D, long heads, const real *query, const real *key, const real *c,
                      real *weight, real *z) {
    bool aligned = heads_on_quads(query, D, heads) && on_quads(key, 0) && on_quads(c, 0) && on_quads(z, 0);
    LAUNCH(multihead_kernel, warps_grid(T * heads), warps_block(), 0, T, n, D, heads, query, key, c,
           (real)(1 / sqrt((double)(D / heads))), weight, z, aligned);
}

/* 16·n·D bytes a token, and 12·D. */
static __global__ void multihead_back_kernel(long T, long n, long D, long heads, real *__restrict__ query,
                                             real *__restrict__ key, const real *__restrict__ c, real root,
                                             const real *__restrict__ weight, const real *__restrict__ dz,
                                             real *__restrict__ dc, bool aligned) {
    __shared__ connection_numbers of_warp[WARPS_OF_BLOCK];
    real *dscore = of_warp[threadIdx.y];
    long width = D / heads;
    EACH_TEAM_ROW(row, T * heads) {
        struct head here = head_of(row, n, D, heads);
        const real *w = weight + here.t * n * heads + here.h; /* n values, `heads` apart */
        real mean = 0;                                        /* Σ_i weight_i·(dz·c_i) */
        for (long i = 0; i < n; i++) {
            real sum = 0, of_connection = w[i * heads];
            EACH_TEAM_QUAD(at, width) {
                long left = width - at, from = here.connection + i * D + at;
                quad d = load_quad(dz + here.column + at, left, aligned),
                     x = load_quad(c + from, left, aligned);
                for (int j = 0; j < 4; j++) {
                    sum += d.v[j] * x.v[j];
                    d.v[j] *= of_connection;
                }
                store_quad(dc + from, left, aligned, d);
            }
            sum = warp_sum(sum);
            keep(dscore, i, sum); /* at first the weight's gradient */
            mean += of_connection * sum;
        }
        EACH_OWN_CONNECTION(i, n) dscore[i] = w[i * heads] * (dscore[i] - mean) * root;
        __syncwarp();
        scores_back(n, width, dscore, query + here.column, key + here.connection, D, aligned);
        __syncwarp();
    }
}

static void multihead_back(long T, long n, long D, long heads, real *query, real *key, const real *c,
                           const real *weight, const real *dz, real *dc) {
    bool aligned = heads_on_quads(query, D, heads) && on_quads(key, 0) && on_quads(c, 0) && on_quads(dz, 0) &&
                   on_quads(dc, 0);
    LAUNCH(multihead_back_kernel, warps_grid(T * heads), warps_block(), 0, T, n, D, heads, query, key, c,
           (real)(1 / sqrt((double)(D / heads))), weight, dz, dc, aligned);
}

void cuda_delta_multihead(struct ops *ops) {
    ops->multihead = multihead;
    ops->multihead_back = multihead_back;
}
