/* Gates' functions of one number, as in kernels/cpu/delta_log.h. A NaN stays one: it fails comparisons. */
#ifndef GDN_CUDA_DELTA_GATE_H
#define GDN_CUDA_DELTA_GATE_H

#include "kernels/cuda/cuda.h"

#define INV_LN2 1.4426950408889634f
#define GATE_MIN 1e-7f /* clamp of a gate, and of 1 − gate, in its entropy */
#define GATE_MAX ((real)(1 - 1e-7))
#define PROBABILITY_MIN 1e-30f /* clamp of a probability in its logarithm */

static __device__ inline real sigmoid(real x) {
    return 1 / (1 + expf(-x));
}

static __device__ inline real clamped_gate(real g) {
    real a = g < GATE_MIN ? GATE_MIN : g;
    return a > GATE_MAX ? GATE_MAX : a;
}

/* −(g·log₂ g + (1 − g)·log₂(1 − g)), clamped. */
static __device__ inline real gate_entropy(real g) {
    real a = clamped_gate(g), b = clamped_gate(1 - g);
    return -INV_LN2 * (a * logf(a) + b * logf(b));
}

/* Its derivative, 0 outside the clamp. */
static __device__ inline real gate_entropy_slope(real g) {
    real a = clamped_gate(g);
    return a == g ? INV_LN2 * logf((1 - a) / a) : 0;
}

/* −p·ln(max(p, 1e-30)) */
static __device__ inline real probability_entropy(real p) {
    return -p * logf(p < PROBABILITY_MIN ? PROBABILITY_MIN : p);
}

/* Its derivative. */
static __device__ inline real probability_entropy_slope(real p) {
    bool clamped = p < PROBABILITY_MIN;
    return -logf(clamped ? PROBABILITY_MIN : p) - (clamped ? 0 : 1);
}

/* The operations softmax_gate and softmax_gate_back (delta_softmax.cu). */
void cuda_delta_softmax(struct ops *ops);

#endif
