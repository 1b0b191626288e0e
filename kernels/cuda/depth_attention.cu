/* CUDA operations of attention over depth, a warp a token. A token's rows of the sources are read again after
 * their scores are known: the nearest cache may have them. */
#include "kernels/cuda/delta_mixing.h"
#include "kernels/cuda/host_list.h"
#include "kernels/cuda/parts.h"

/* Arguments of both passes. */
struct depth {
    long T, n, D;
    const real *query, *lambda; /* lambda NULL: no null source, and x is the sum */
    real eps;
    bool aligned;
    host_list<const real> h;
};

static struct depth take_depth(long T, long n, long D, const real *query, const real *const *h, double eps,
                               const real *lambda, bool aligned) {
    struct depth a = {T, n, D, query, lambda, (real)eps, aligned && on_quads(query, D), take_list(n, h)};
    a.aligned = a.aligned && list_on_quads(n, a.h, D);
    return a;
}

static __device__ inline quad load(const struct depth &a, const real *row, long at) {
    return load_quad(row + at, a.D - at, a.aligned);
}

/* Of a token and each source, for the warp. */
struct weights {
    connection_numbers product, rstd, p; /* query·h, the inverse rms of h, and the weight */
};

/* Softmax of the warp's n scores, and of 0 where there is a null source, in place. */
static __device__ inline void softmax_with(bool null, long n, real *x) {
    real largest = null ? 0 : -INFINITY, sum = 0;
    EACH_OWN_CONNECTION(i, n) largest = fmaxf(largest, x[i]);
    largest = warp_max(largest);
    EACH_OWN_CONNECTION(i, n) {
        x[i] = expf(x[i] - largest);
        sum += x[i];
    }
    sum = warp_sum(sum) + (null ? expf(-largest) : 0);
    EACH_OWN_CONNECTION(i, n) x[i] /= sum;
    __syncwarp();
}

/* Of token t. All of the warp take part. */
static __device__ inline void weigh(const struct depth &a, long t, struct weights *w) {
    for (long i = 0; i < a.n; i++) {
        const real *row = a.h.of[i] + t * a.D;
        real product = 0, square = 0;
        EACH_TEAM_QUAD(at, a.D) {
            quad h = load(a, row, at), query = load(a, a.query, at);
            for (int j = 0; j < 4; j++) {
                product += query.v[j] * h.v[j];
                square += h.v[j] * h.v[j];
            }
        }
        product = warp_sum(product);
        real rstd = 1 / sqrtf(warp_sum(square) / (real)a.D + a.eps);
        keep(w->product, i, product);
        keep(w->rstd, i, rstd);
        keep(w->p, i, product * rstd);
    }
    softmax_with(a.lambda, a.n, w->p);
}

/* 8·n·D bytes a token, and 8·D. */
static __global__ void depth_kernel(struct depth a, real *x) {
    __shared__ struct weights of_warp[WARPS_OF_BLOCK];
    struct weights *w = &of_warp[threadIdx.y];
    real part = a.lambda ? *a.lambda : 1;
    EACH_TEAM_ROW(t, a.T) {
        weigh(a, t, w);
        EACH_TEAM_QUAD(at, a.D) {
            quad sum = {}, to = load(a, x + t * a.D, at);
            for (long i = 0; i < a.n; i++) {
                quad h = load(a, a.h.of[i] + t * a.D, at);
                for (int j = 0; j < 4; j++) sum.v[j] += w->p[i] * h.v[j];
            }
            for (int j = 0; j < 4; j++) to.v[j] = a.lambda ? to.v[j] + part * (sum.v[j] - to.v[j]) : sum.v[j];
            store_quad(x + t * a.D + at, a.D - at, a.aligned, to);
        }
        __syncwarp();
    }
}

static void depth_attention(long T, long n, long D, const real *query, const real *const *h, double eps,
                            const real *lambda, real *x) {
    struct depth a = take_depth(T, n, D, query, h, eps, lambda, on_quads(x, D));
    LAUNCH(depth_kernel, warps_grid(T), warps_block(), 0, a, x);
}

struct depth_back {
    const real *x, *dout;
    real *dquery, *dlambda;
    host_list<real> dh;
};

/* Factors of a source's gradient: value of dout, score of query, norm of the source itself. */
struct factors {
    connection_numbers value, score, norm;
};

/* With a_i = dout·h_i: dscore_i = λ·p_i·(a_i − Σ p·a). */
static __device__ inline void find_factors(const struct depth &a, const struct depth_back &b, long t,
                                           const struct weights *w, struct factors *f) {
    const real *dout = b.dout + t * a.D;
    real mean = 0, strength = a.lambda ? *a.lambda : 1;
    for (long i = 0; i < a.n; i++) keep(f->score, i, dot(a.D, dout, a.h.of[i] + t * a.D, a.aligned));
    EACH_OWN_CONNECTION(i, a.n) mean += w->p[i] * f->score[i];
    mean = warp_sum(mean);
    if (a.lambda) {
        real without = dot(a.D, dout, b.x + t * a.D, a.aligned);
        if (threadIdx.x == 0) b.dlambda[t] = mean - without;
    }
    EACH_OWN_CONNECTION(i, a.n) {
        real rstd = w->rstd[i], score = strength * w->p[i] * (f->score[i] - mean) * rstd;
        f->value[i] = strength * w->p[i];
        f->score[i] = score;
        f->norm[i] = score * rstd * rstd * w->product[i] / (real)a.D;
    }
    __syncwarp();
}

/* 20·n·D bytes a token, and 12·D. */
static __global__ void depth_back_kernel(struct depth a, struct depth_back b) {
    __shared__ struct weights weights_of[WARPS_OF_BLOCK];
    __shared__ struct factors factors_of[WARPS_OF_BLOCK];
    struct factors *f = &factors_of[threadIdx.y];
    EACH_TEAM_ROW(t, a.T) {
        weigh(a, t, &weights_of[threadIdx.y]);
        find_factors(a, b, t, &weights_of[threadIdx.y], f);
        EACH_TEAM_QUAD(at, a.D) {
            quad query = load(a, a.query, at), dout = load(a, b.dout + t * a.D, at), dquery = {};
            for (long i = 0; i < a.n; i++) {
                quad h = load(a, a.h.of[i] + t * a.D, at), dh = load(a, b.dh.of[i] + t * a.D, at);
                for (int j = 0; j < 4; j++) {
                    dh.v[j] += f->value[i] * dout.v[j] + f->score[i] * query.v[j] - f->norm[i] * h.v[j];
                    dquery.v[j] += f->score[i] * h.v[j];
                }
                store_quad(b.dh.of[i] + t * a.D + at, a.D - at, a.aligned, dh);
            }
            store_quad(b.dquery + t * a.D + at, a.D - at, a.aligned, dquery);
        }
        __syncwarp();
    }
}

static void depth_attention_back(long T, long n, long D, const real *query, const real *const *h, double eps,
                                 const real *lambda, const real *x, const real *dout, real *const *dh,
                                 real *dquery, real *dlambda) {
    struct depth a = take_depth(T, n, D, query, h, eps, lambda,
                                on_quads(dout, D) && on_quads(dquery, D) && (!lambda || on_quads(x, D)));
    struct depth_back b = {x, dout, dquery, dlambda, take_list(n, dh)};
    a.aligned = a.aligned && list_on_quads(n, b.dh, D);
    LAUNCH(depth_back_kernel, warps_grid(T), warps_block(), 0, a, b);
}

extern "C" void cuda_depth_attention(struct ops *ops) {
    ops->depth_attention = depth_attention;
    ops->depth_attention_back = depth_attention_back;
}
