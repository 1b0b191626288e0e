/* CUDA operations of the regularisers: sums of gate entropies, and the norms of bottleneck contributions. */
#include "kernels/cuda/delta_gate.h"
#include "kernels/cuda/delta_sums.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

struct of_gates {
    static __device__ inline real entropy(real g) { return gate_entropy(g); }
};

struct of_probabilities {
    static __device__ inline real entropy(real p) { return probability_entropy(p); }
};

/* 4 bytes an element. Block p: the entropies of rows [p·rows, (p + 1)·rows). Four elements are added up as
 * `real`, all else in double. */
template <typename kind>
static __global__ void entropy_kernel(long T, long W, long rows, const real *__restrict__ x, long ld,
                                      bool aligned, const real *__restrict__ counts,
                                      double *__restrict__ part) {
    long first = blockIdx.x * rows, mine = T - first < rows ? T - first : rows;
    unsigned of_row = (unsigned)((W + 3) / 4), quads = (unsigned)mine * of_row;
    double sum = 0;
    for (unsigned k = threadIdx.x; k < quads; k += blockDim.x) {
        unsigned row = k / of_row;
        long at = 4 * (long)(k - row * of_row), left = W - at;
        quad q = load_quad(x + (first + row) * ld + at, left, aligned);
        real four = 0;
        for (int i = 0; i < 4; i++) four += i < left ? kind::entropy(q.v[i]) : 0;
        sum += (counts ? counts[first + row] : 1) * four;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

template <typename kind>
static void add_entropy(long T, long W, const real *x, long ld, double factor, const real *counts,
                        double *sum) {
    long rows = rows_of_part(T, ceil_div(4 * SUM_THREADS, W)), parts = ceil_div(T, rows);
    double *part = (double *)workspace((size_t)parts * sizeof *part);
    LAUNCH(entropy_kernel<kind>, (unsigned)parts, SUM_THREADS, 0, T, W, rows, x, ld, on_quads(x, ld), counts, part);
    LAUNCH(finish_sums<double>, 1, SUM_THREADS, 0, parts, part, factor, sum);
}

static void binary_entropy(long T, long W, const real *g, long ld, double factor, const real *counts,
                           double *sum) {
    add_entropy<of_gates>(T, W, g, ld, factor, counts, sum);
}

static void softmax_entropy(long T, long W, const real *p, long ld, const real *counts, double *sum) {
    add_entropy<of_probabilities>(T, W, p, ld, 1 / log((double)W), counts, sum);
}

struct gram {
    long T, W, D;
    const real *v;
    double sparsity;
    const real *counts;
    real *q, *kv;
    long ld;
    real *rms;
    bool aligned;
};

static __device__ inline void load_both(const struct gram &a, long at, long left, quad *q, quad *v) {
    *q = load_quad(a.q + at, left, a.aligned);
    *v = load_quad(a.v + at, left, a.aligned);
}

static __device__ inline real dot_of(const quad &q, const quad &v) {
    return q.v[0] * v.v[0] + q.v[1] * v.v[1] + (q.v[2] * v.v[2] + q.v[3] * v.v[3]);
}

static __device__ inline void put(const struct gram &a, long at, long left, quad q, quad v, real slope) {
    for (int i = 0; i < 4; i++) {
        q.v[i] *= slope;
        v.v[i] *= slope;
    }
    store_quad(a.q + at, left, a.aligned, q);
    if (a.kv) store_quad(a.kv + at, left, a.aligned, v);
}

/* 8 bytes an element; with sparsity 4 more, and 4 for kv. What fits of a row stays in registers. */
static __global__ void __launch_bounds__(MAX_TEAM) gram_kernel(struct gram a) {
    EACH_TEAM_ROW(t, a.T) {
        quad q[KEPT], v[KEPT], other_q, other_v;
        long row = t * a.ld;
        real square = 0; /* ‖c‖² = vᵀ(WoᵀWo)v; rounding can make it negative */
        EACH_KEPT(k) {
            q[k] = v[k] = {};
            if (team_quad(k) < a.W) load_both(a, row + team_quad(k), a.W - team_quad(k), &q[k], &v[k]);
            square += dot_of(q[k], v[k]);
        }
        EACH_OTHER(at, a.W) {
            load_both(a, row + at, a.W - at, &other_q, &other_v);
            square += dot_of(other_q, other_v);
        }
        square = team_sum(square);
        double norm = sqrt((double)(square < 0 ? 0 : square) / (double)a.D + 1e-12);
        const real part = a.counts ? a.counts[t] : 1;
        if (threadIdx.x == 0) a.rms[t] = part * (real)norm;
        if (a.sparsity == 0) continue;
        real slope = part * (real)(a.sparsity / ((double)a.D * norm));
        EACH_KEPT(k)
        if (team_quad(k) < a.W) put(a, row + team_quad(k), a.W - team_quad(k), q[k], v[k], slope);
        EACH_OTHER(at, a.W) {
            load_both(a, row + at, a.W - at, &other_q, &other_v);
            put(a, row + at, a.W - at, other_q, other_v, slope);
        }
    }
}

static void gram_rms(long T, long W, long D, const real *v, double sparsity, const real *counts, real *q,
                     real *kv, long ld, real *rms) {
    bool aligned = on_quads(v, ld) && on_quads(q, ld) && on_quads(kv, ld);
    struct gram a = {T, W, D, v, sparsity, counts, q, kv, ld, rms, aligned};
    LAUNCH(gram_kernel, team_grid(T, W), team_block(W), 0, a);
}

void cuda_delta_entropy(struct ops *ops) {
    ops->binary_entropy = binary_entropy;
    ops->softmax_entropy = softmax_entropy;
    ops->gram_rms = gram_rms;
}
