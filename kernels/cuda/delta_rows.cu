/* CUDA operations of what connections have one number a token of: row factors of `normalize`, magnitudes and
 * weights of contributions, with their sums over tokens. Small beside everything D wide. */
#include "kernels/cuda/delta_sums.h"
#include "kernels/cuda/parts.h"

enum { TOKENS_OF_PART = 4 * SUM_THREADS }; /* at least, of the sums over tokens */

/* Blocks for a thread a number. */
static unsigned one_each(long count) {
    return (unsigned)ceil_div(count, SUM_THREADS);
}

static __global__ void factors(long T, const real *__restrict__ gamma, const real *__restrict__ inv,
                               real *__restrict__ r) {
    long t = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t < T) r[t] = *gamma * inv[t];
}

static void row_factors(long T, const real *gamma, const real *inv, real *r) {
    LAUNCH(factors, one_each(T), SUM_THREADS, 0, T, gamma, inv, r);
}

/* Block p: tokens [p·rows, (p + 1)·rows). */
static __global__ void factors_back(long T, long rows, const real *__restrict__ gamma,
                                    const real *__restrict__ inv, real greatest, const real *__restrict__ dr,
                                    real *__restrict__ k, double *__restrict__ part) {
    long end = (blockIdx.x + 1) * rows < T ? (blockIdx.x + 1) * rows : T;
    double sum = 0;
    for (long t = blockIdx.x * rows + threadIdx.x; t < end; t += blockDim.x) {
        sum += (double)dr[t] * inv[t];
        if (inv[t] < greatest) k[t] -= dr[t] * *gamma * inv[t] * inv[t] * inv[t];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static void row_factors_back(long T, const real *gamma, const real *inv, double eps, const real *dr, real *k,
                             real *dgamma) {
    long rows = rows_of_part(T, TOKENS_OF_PART), parts = ceil_div(T, rows);
    double *part = (double *)workspace((size_t)parts * sizeof *part);
    LAUNCH(factors_back, (unsigned)parts, SUM_THREADS, 0, T, rows, gamma, inv, (real)(1 / eps), dr, k, part);
    LAUNCH(finish_sums<real>, 1, SUM_THREADS, 0, parts, part, 1.0, dgamma);
}

static __global__ void magnitude_back(long T, long D, const real *__restrict__ r, const real *__restrict__ e,
                                      const real *__restrict__ square, const real *__restrict__ de,
                                      real *__restrict__ k, real *__restrict__ dr) {
    long t = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= T) return;
    real factor = r ? r[t] : 1, slope = de[t] / e[t];
    k[t] = slope * factor * factor / (real)D;
    if (r) dr[t] += slope * factor * square[t];
}

static void delta_magnitude_back(long T, long D, const real *r, const real *e, const real *square,
                                 const real *de, real *k, real *dr) {
    LAUNCH(magnitude_back, one_each(T), SUM_THREADS, 0, T, D, r, e, square, de, k, dr);
}

/* What connection i's share of a token is read from. */
struct shares {
    const real *alpha; /* or NULL: `even` */
    long lda, step;
    real even;
};

static __device__ inline real share(struct shares s, long t, long i) {
    return s.alpha ? s.alpha[t * s.lda + i * s.step] : s.even;
}

/* A thread an element of weight [T, n]. */
static __global__ void weights(long T, int n, struct shares shares, const real *__restrict__ mix,
                               real *__restrict__ weight) {
    long at = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= T * n) return;
    long t = at / n, i = at - t * n;
    weight[at] = share(shares, t, i) * (mix ? mix[i] : 1);
}

static void connection_weights(long T, long n, const real *alpha, long lda, long step, real even,
                               const real *mix, real *weight) {
    struct shares shares = {alpha, lda, step, even};
    LAUNCH(weights, one_each(T * n), SUM_THREADS, 0, T, (int)n, shares, mix, weight);
}

/* Block (p, i): connection i of tokens [p·rows, (p + 1)·rows). dalpha may be dweight: a thread reads an
 * element before it writes it. */
static __global__ void weights_back(long T, long rows, struct shares shares, const real *__restrict__ mix,
                                    const real *dweight, double *__restrict__ part, real *dalpha) {
    long n = gridDim.y, i = blockIdx.y;
    long end = (blockIdx.x + 1) * rows < T ? (blockIdx.x + 1) * rows : T;
    real of_connection = mix ? mix[i] : 1;
    double sum = 0;
    for (long t = blockIdx.x * rows + threadIdx.x; t < end; t += blockDim.x) {
        real d = dweight[t * n + i];
        sum += (double)d * share(shares, t, i);
        if (dalpha) dalpha[t * shares.lda + i * shares.step] = d * of_connection;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[i * gridDim.x + blockIdx.x] = sum;
}

static void connection_weights_back(long T, long n, const real *alpha, long lda, long step, real even,
                                    const real *mix, const real *dweight, real *dmix, real *dalpha) {
    struct shares shares = {alpha, lda, step, even};
    long rows = rows_of_part(T, TOKENS_OF_PART), parts = ceil_div(T, rows);
    double *part = (double *)workspace((size_t)(n * parts) * sizeof *part);
    LAUNCH(weights_back, dim3((unsigned)parts, (unsigned)n), SUM_THREADS, 0, T, rows, shares, mix, dweight,
           part, dalpha);
    if (dmix) LAUNCH(finish_sums<real>, (unsigned)n, SUM_THREADS, 0, parts, part, 1.0, dmix);
}

void cuda_delta_rows(struct ops *ops) {
    ops->row_factors = row_factors;
    ops->row_factors_back = row_factors_back;
    ops->delta_magnitude_back = delta_magnitude_back;
    ops->connection_weights = connection_weights;
    ops->connection_weights_back = connection_weights_back;
}
