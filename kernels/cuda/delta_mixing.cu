/* CUDA operations of the aggregate `attention`, a warp a token; those of `multihead` are in
 * delta_multihead.cu. */
#include "kernels/cuda/delta_mixing.h"
#include "kernels/cuda/host_list.h"
#include "kernels/cuda/parts.h"

/* 4·n·a bytes a token, and 4·a. */
static __global__ void select_kernel(long T, long n, long a, const real *__restrict__ query,
                                     const real *__restrict__ key, const real *__restrict__ rt,
                                     host_list<const real> rs, real root, real *__restrict__ weight,
                                     bool aligned) {
    __shared__ connection_numbers of_warp[WARPS_OF_BLOCK];
    real *w = of_warp[threadIdx.y];
    EACH_TEAM_ROW(t, T) {
        real scale = rt[t] * root;
        for (long i = 0; i < n; i++) keep(w, i, dot(a, query + t * a, key + (t * n + i) * a, aligned));
        EACH_OWN_CONNECTION(i, n) w[i] *= scale * rs.of[i][t];
        softmax(n, w);
        EACH_OWN_CONNECTION(i, n) weight[t * n + i] = w[i];
    }
}

static void select_weights(long T, long n, long a, const real *query, const real *key, const real *rt,
                           const real *const *rs, real *weight) {
    LAUNCH(select_kernel, warps_grid(T), warps_block(), 0, T, n, a, query, key, rt, take_list(n, rs),
           (real)(1 / sqrt((double)a)), weight, on_quads(query, a) && on_quads(key, a));
}

/* 8·n·a bytes a token, and 8·a. With dlogit_i = w_i·(dw_i − Σ w·dw)/√a, a score query·key_i has the gradient
 * dlogit_i·rt·r_i. */
static __global__ void select_back_kernel(long T, long n, long a, long D, real *__restrict__ query,
                                          real *__restrict__ key, const real *__restrict__ rt,
                                          host_list<const real> rs, real root,
                                          const real *__restrict__ weight, const real *__restrict__ dweight,
                                          real *__restrict__ ct, real *__restrict__ cs, bool aligned) {
    __shared__ connection_numbers of_warp[WARPS_OF_BLOCK];
    real *dscore = of_warp[threadIdx.y], inverse = 1 / (real)D;
    EACH_TEAM_ROW(t, T) {
        const real *w = weight + t * n, *dw = dweight + t * n;
        real *q = query + t * a, *k = key + t * n * a, target = rt[t], mean = 0, drt = 0;
        for (long i = 0; i < n; i++)
            keep(dscore, i, dot(a, q, k + i * a, aligned)); /* at first the score itself */
        EACH_OWN_CONNECTION(i, n) mean += w[i] * dw[i];
        mean = warp_sum(mean);
        EACH_OWN_CONNECTION(i, n) {
            real r = rs.of[i][t], dlogit = w[i] * (dw[i] - mean) * root, by_score = dlogit * dscore[i];
            drt += by_score * r;
            cs[i * T + t] = -by_score * target * r * r * r * inverse;
            dscore[i] = dlogit * target * r;
        }
        drt = warp_sum(drt);
        if (threadIdx.x == 0) ct[t] = -drt * target * target * target * inverse;
        __syncwarp();
        scores_back(n, a, dscore, q, k, a, aligned);
        __syncwarp();
    }
}

static void select_back(long T, long n, long a, long D, real *query, real *key, const real *rt,
                        const real *const *rs, const real *weight, real *dweight, real *ct, real *cs) {
    LAUNCH(select_back_kernel, warps_grid(T), warps_block(), 0, T, n, a, D, query, key, rt, take_list(n, rs),
           (real)(1 / sqrt((double)a)), weight, dweight, ct, cs, on_quads(query, a) && on_quads(key, a));
}

void cuda_delta_mixing(struct ops *ops) {
    ops->select = select_weights;
    ops->select_back = select_back;
    cuda_delta_multihead(ops);
}
