/* CUDA backend: loss and its gradient, a team of threads a row. One pass finds the largest logit and the sum
 * of exponentials together: where a larger one turns up, the sum so far is scaled down. The gradient's pass
 * has what fits in registers from the first, and the rest out of the cache. */
#include <float.h>
#include <math.h>

#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

/* The largest of some logits, and the sum of exp(logit − largest). None: a number whose distance to any is
 * finite. A NaN is never the largest, but reaches the sum. */
struct soft {
    real largest, sum;
};

static __device__ inline quad load_logits(const real *row, long V, long at, bool aligned) {
    return load_quad(row + at, V - at, aligned, -INFINITY); /* whose exponential is 0 */
}

static __device__ inline real largest_of(real largest, const quad &q) {
    for (int i = 0; i < 4; i++) largest = q.v[i] > largest ? q.v[i] : largest;
    return largest;
}

static __device__ inline void join(struct soft *all, const quad &q) {
    real largest = largest_of(all->largest, q);
    if (largest > all->largest) all->sum *= expf(all->largest - largest);
    all->largest = largest;
    for (int i = 0; i < 4; i++) all->sum += expf(q.v[i] - largest);
}

/* Of the whole row, for all threads of the team; its first KEPT quads are kept. */
static __device__ inline struct soft soft_row(const real *row, long V, bool aligned, quad *kept) {
    struct soft own = {-FLT_MAX, 0};
    EACH_KEPT(k) {
        kept[k] = load_logits(row, V, team_quad(k), aligned);
        join(&own, kept[k]);
    }
    for (int next = KEPT; team_quad(next) < V; next += KEPT) { /* as many reads at a time */
        quad q[KEPT];
        EACH_KEPT(k) q[k] = load_logits(row, V, team_quad(next + k), aligned);
        EACH_KEPT(k) join(&own, q[k]);
    }
    real largest = team_max(own.largest);
    return {largest, team_sum(own.sum * expf(own.largest - largest))};
}

/* What the gradient is of (trunk_operations.h): scale·(loss + z·lse²), of logits capped by 1/part. */
struct gradient {
    real scale, z, part;
};

static struct gradient gradient_of(double cap, double z, double scale) {
    return {(real)scale, (real)z, cap != 0 ? (real)(1 / cap) : 0};
}

/* What exponentials that add up to `sum` are multiplied with. */
static __device__ inline real factor_of(const struct gradient &g, real sum, real lse) {
    return g.scale / sum * (1 + 2 * g.z * lse);
}

/* The slope of softcap at what became this logit. */
static __device__ inline real cap_slope(const struct gradient &g, real logit) {
    return 1 - g.part * logit * (g.part * logit);
}

/* factor·exp(logit − largest), less `scale` for the target, whose place counts from this quad. */
template <bool capped>
static __device__ inline void put_gradient(real *to, long left, quad q, real largest, real factor,
                                           long target, const struct gradient &g, bool aligned) {
    for (int i = 0; i < 4; i++) {
        real logit = q.v[i];
        q.v[i] = factor * expf(logit - largest) - (i == target ? g.scale : 0);
        if (capped) q.v[i] *= cap_slope(g, logit);
    }
    store_quad(to, left, aligned, q);
}

static __global__ void softcap_kernel(long T, long V, real *logits, long ld, real cap, real part,
                                      bool aligned) {
    long at = tile_column();
    if (at >= V) return;
    EACH_TILE_ROW(t, T) {
        real *to = logits + t * ld + at;
        quad q = load_quad(to, V - at, aligned);
        for (int i = 0; i < 4; i++) q.v[i] = cap * tanhf(part * q.v[i]);
        store_quad(to, V - at, aligned, q);
    }
}

static void softcap(long T, long V, real *logits, long ld, double cap) {
    LAUNCH(softcap_kernel, tile_grid(T, V), tile_block(V), 0, T, V, logits, ld, (real)cap, (real)(1 / cap),
           on_quads(logits, ld));
}

/* Of a token that does not count, by its whole team. */
static __device__ inline void leave_out(real *row, long V, bool gradient, bool aligned, real *loss,
                                        real *square) {
    if (threadIdx.x == 0) *loss = 0;
    if (threadIdx.x == 0 && square) *square = 0;
    for (int next = 0; gradient && team_quad(next) < V; next++)
        store_quad(row + team_quad(next), V - team_quad(next), aligned, quad{});
}

template <bool capped>
static __global__ void __launch_bounds__(MAX_TEAM, 2)
    cross_entropy_kernel(long T, long V, real *logits, long ld, const int32_t *target, struct gradient g,
                         real *loss, real *squares, bool aligned) {
    EACH_TEAM_ROW(t, T) {
        real *row = logits + t * ld;
        quad kept[KEPT];
        long aim = target[t];
        if (aim < 0) {
            leave_out(row, V, g.scale != 0, aligned, loss + t, squares ? squares + t : NULL);
            continue;
        }
        real right = row[aim]; /* before anyone overwrites it, which is after the team's sums */
        struct soft soft = soft_row(row, V, aligned, kept);
        __syncwarp();
        real lse = logf(soft.sum) + soft.largest;
        if (threadIdx.x == 0) loss[t] = logf(soft.sum) + (soft.largest - right);
        if (threadIdx.x == 0 && squares) squares[t] = lse * lse;
        if (g.scale == 0) continue;
        real factor = factor_of(g, soft.sum, lse);
        for (int next = 0; team_quad(next) < V; next += KEPT) {
            if (next > 0) EACH_KEPT(k) kept[k] = load_logits(row, V, team_quad(next + k), aligned);
            EACH_KEPT(k) {
                long at = team_quad(next + k);
                put_gradient<capped>(row + at, V - at, kept[k], soft.largest, factor, aim - at, g, aligned);
            }
        }
    }
}

static void cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, double cap, double z,
                          double scale, real *loss, real *squares) {
    auto cross_entropy_rows = cap != 0 ? cross_entropy_kernel<true> : cross_entropy_kernel<false>;
    LAUNCH(cross_entropy_rows, team_grid(T, V), team_block(V), 0, T, V, logits, ld, target,
           gradient_of(cap, z, scale), loss, squares, on_quads(logits, ld));
}

/* ----------------------------------------------------------------------------- parts of the vocabulary */

static __global__ void __launch_bounds__(MAX_TEAM)
    row_largest_kernel(long T, long V, const real *logits, long ld, real *largest, bool aligned) {
    EACH_TEAM_ROW(t, T) {
        real own = -INFINITY;
        for (long at = team_quad(0); at < V; at += 4 * (long)blockDim.x)
            own = largest_of(own, load_logits(logits + t * ld, V, at, aligned));
        own = team_max(own);
        if (threadIdx.x == 0) largest[t] = own;
    }
}

static void row_largest(long T, long V, const real *logits, long ld, real *largest) {
    LAUNCH(row_largest_kernel, team_grid(T, V), team_block(V), 0, T, V, logits, ld, largest,
           on_quads(logits, ld));
}

static __global__ void __launch_bounds__(MAX_TEAM)
    part_exp_kernel(long T, long V, real *logits, long ld, const int32_t *target, long first,
                    const real *largest, bool keep, real *sums, bool aligned) {
    EACH_TEAM_ROW(t, T) {
        long aim = target[t] - first;
        real sum = 0, most = largest[t];
        for (long at = team_quad(0); at < V; at += 4 * (long)blockDim.x) {
            quad q = load_logits(logits + t * ld, V, at, aligned);
            for (int i = 0; i < 4; i++) {
                real less = q.v[i] - most;
                if (at + i == aim && aim < V) sums[T + t] = less;
                sum += q.v[i] = expf(less);
            }
            if (keep) store_quad(logits + t * ld + at, V - at, aligned, q);
        }
        sum = team_sum(sum);
        if (threadIdx.x != 0) continue;
        sums[t] = sum;
        if (aim < 0 || aim >= V) sums[T + t] = 0;
    }
}

static void part_exp(long T, long V, real *logits, long ld, const int32_t *target, long first,
                     const real *largest, double cap, real *sums) {
    LAUNCH(part_exp_kernel, team_grid(T, V), team_block(V), 0, T, V, logits, ld, target, first, largest,
           cap == 0, sums, on_quads(logits, ld));
}

template <bool capped>
static __global__ void part_cross_entropy_kernel(long T, long V, real *logits, long ld, const int32_t *target,
                                                 long first, const real *largest, const real *sums,
                                                 struct gradient g, real *loss, real *squares, bool aligned) {
    long at = tile_column();
    if (at >= V) return;
    EACH_TILE_ROW(t, T) {
        const bool counts = target[t] >= 0;
        real lse = at == 0 || g.z != 0 ? logf(sums[t]) + largest[t] : 0;
        if (at == 0) loss[t] = counts ? logf(sums[t]) - sums[T + t] : 0;
        if (at == 0 && squares) squares[t] = counts ? lse * lse : 0;
        if (g.scale == 0) continue;
        real *to = logits + t * ld + at, factor = factor_of(g, sums[t], lse);
        long aim = target[t] - first - at;
        quad q = counts ? load_quad(to, V - at, aligned) : quad{};
        for (int i = 0; counts && i < 4; i++) {
            real logit = q.v[i];
            q.v[i] = factor * (capped ? expf(logit - largest[t]) : logit) - (i == aim ? g.scale : 0);
            if (capped) q.v[i] *= cap_slope(g, logit);
        }
        store_quad(to, V - at, aligned, q);
    }
}

static void part_cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, long first,
                               const real *largest, const real *sums, double cap, double z, double scale,
                               real *loss, real *squares) {
    auto part_cross_entropy_rows =
        cap != 0 ? part_cross_entropy_kernel<true> : part_cross_entropy_kernel<false>;
    long W = scale != 0 ? V : 1; /* the losses alone */
    LAUNCH(part_cross_entropy_rows, tile_grid(T, W), tile_block(W), 0, T, W, logits, ld, target, first,
           largest, sums, gradient_of(cap, z, scale), loss, squares, on_quads(logits, ld));
}

extern "C" void cuda_loss(struct ops *ops) {
    ops->softcap = softcap;
    ops->cross_entropy = cross_entropy;
    ops->row_largest = row_largest;
    ops->part_exp = part_exp;
    ops->part_cross_entropy = part_cross_entropy;
}
