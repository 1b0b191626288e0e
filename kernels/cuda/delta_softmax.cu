/* CUDA operations of the softmax gate, a team of threads a row. A row that fits stays in registers from the
 * reading to the writing, so memory is passed once; what is left of a wider one is read again. */
#include "kernels/cuda/delta_gate.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/rows.h"

struct softmax {
    long T, W;
    const real *bias;
    real inverse, *x;
    long ld;
    bool aligned;
};

/* Scores of four columns; those of columns that do not exist are −∞ and count for nothing. */
static __device__ inline quad scores(const struct softmax &a, const real *row, long at) {
    if (at >= a.W) return {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    quad q = load_quad(row + at, a.W - at, a.aligned, -INFINITY),
         b = load_quad(a.bias + at, a.W - at, a.aligned);
    for (int i = 0; i < 4; i++) q.v[i] = (q.v[i] + b.v[i]) * a.inverse;
    return q;
}

/* Passes over a NaN; the sum will not. */
static __device__ inline real largest_of(const quad &q, real largest) {
    for (int i = 0; i < 4; i++) largest = fmaxf(largest, q.v[i]);
    return largest;
}

static __device__ inline real exponentials(quad *q, real largest) {
    for (int i = 0; i < 4; i++) q->v[i] = expf(q->v[i] - largest);
    return q->v[0] + q->v[1] + (q->v[2] + q->v[3]);
}

static __device__ inline void put(const struct softmax &a, real *row, long at, quad q, real factor) {
    for (int i = 0; i < 4; i++) q.v[i] *= factor;
    store_quad(row + at, a.W - at, a.aligned, q);
}

/* 8 bytes an element. */
static __global__ void __launch_bounds__(MAX_TEAM) softmax_kernel(struct softmax a) {
    EACH_TEAM_ROW(t, a.T) {
        real *row = a.x + t * a.ld, largest = -INFINITY, sum = 0;
        quad kept[KEPT];
        EACH_KEPT(k) {
            kept[k] = scores(a, row, team_quad(k));
            largest = largest_of(kept[k], largest);
        }
        EACH_OTHER(at, a.W) largest = largest_of(scores(a, row, at), largest);
        largest = team_max(largest);
        EACH_KEPT(k) sum += exponentials(&kept[k], largest);
        EACH_OTHER(at, a.W) {
            quad q = scores(a, row, at);
            sum += exponentials(&q, largest);
        }
        real factor = 1 / team_sum(sum);
        EACH_KEPT(k) if (team_quad(k) < a.W) put(a, row, team_quad(k), kept[k], factor);
        EACH_OTHER(at, a.W) {
            quad q = scores(a, row, at);
            exponentials(&q, largest);
            put(a, row, at, q, factor);
        }
    }
}

static void softmax_gate(long T, long W, const real *bias, double inv_temperature, real *x, long ld) {
    struct softmax a = {T, W, bias, (real)inv_temperature, x, ld, on_quads(bias, 0) && on_quads(x, ld)};
    LAUNCH(softmax_kernel, team_grid(T, W), team_block(W), 0, a);
}

struct softmax_back {
    long T, W;
    real inverse;
    const real *p;
    long ld;
    real slope; /* entropy/ln W, the weight of the entropy's gradient */
    const real *counts;
    real *dp;
    long lddp;
    bool aligned;
};

/* Probabilities p and their whole gradients of four columns; returns Σ p·gradient. */
static __device__ inline real gradients(const struct softmax_back &a, long t, long at, quad *p, quad *d) {
    *p = *d = {};
    if (at >= a.W) return 0;
    *p = load_quad(a.p + t * a.ld + at, a.W - at, a.aligned);
    *d = load_quad(a.dp + t * a.lddp + at, a.W - at, a.aligned);
    real sum = 0, slope = a.slope * (a.counts ? a.counts[t] : 1);
    for (int i = 0; i < 4; i++) {
        if (slope != 0) d->v[i] += slope * probability_entropy_slope(p->v[i]);
        sum += p->v[i] * d->v[i];
    }
    return sum;
}

static __device__ inline void put(const struct softmax_back &a, long t, long at, const quad &p, quad d,
                                  real mean) {
    for (int i = 0; i < 4; i++) d.v[i] = a.inverse * p.v[i] * (d.v[i] - mean);
    store_quad(a.dp + t * a.lddp + at, a.W - at, a.aligned, d);
}

/* 12 bytes an element. */
static __global__ void __launch_bounds__(MAX_TEAM) softmax_back_kernel(struct softmax_back a) {
    EACH_TEAM_ROW(t, a.T) {
        quad p[KEPT], d[KEPT], other_p, other_d;
        real mean = 0; /* Σ p·(dL/dp) */
        EACH_KEPT(k) mean += gradients(a, t, team_quad(k), &p[k], &d[k]);
        EACH_OTHER(at, a.W) mean += gradients(a, t, at, &other_p, &other_d);
        mean = team_sum(mean);
        EACH_KEPT(k) if (team_quad(k) < a.W) put(a, t, team_quad(k), p[k], d[k], mean);
        EACH_OTHER(at, a.W) {
            gradients(a, t, at, &other_p, &other_d);
            put(a, t, at, other_p, other_d, mean);
        }
    }
}

static void softmax_gate_back(long T, long W, double inv_temperature, const real *p, long ld, double entropy,
                              const real *counts, real *dp, long lddp) {
    real slope = entropy != 0 ? (real)(entropy / log((double)W)) : 0;
    bool aligned = on_quads(p, ld) && on_quads(dp, lddp);
    struct softmax_back a = {T, W, (real)inv_temperature, p, ld, slope, counts, dp, lddp, aligned};
    LAUNCH(softmax_back_kernel, team_grid(T, W), team_block(W), 0, a);
}

void cuda_delta_softmax(struct ops *ops) {
    ops->softmax_gate = softmax_gate;
    ops->softmax_gate_back = softmax_gate_back;
}
