/* exp, tanh, the logistic function and silu, written so that compilers vectorise loops that call them (mark the
 * loop `#pragma omp simd`). NaN in gives NaN out; overflow gives infinity and underflow 0. In a double build
 * they are libm's, whose last digits matter more there than speed. */
#ifndef GDN_VECTOR_MATH_H
#define GDN_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/base/real.h"

#define VECTOR_INLINE static inline __attribute__((always_inline))

#ifdef GDN_DOUBLE

VECTOR_INLINE real vector_exp(real x) {
    return exp(x);
}

VECTOR_INLINE real vector_tanh(real x) {
    return tanh(x);
}

#else

/* eˣ = 2ⁿ·eʳ with n the integer next to x/ln 2, so |r| ≤ ln 2 / 2; eʳ = 1 + r + r²·q(r) with q of degree 4
 * fitted for the least relative error (3e-9 before rounding). Results below 1.7e-38 are 0. */
VECTOR_INLINE real vector_exp(real x) {
    const float shift = 0x1.8p23f + 126; /* adding it leaves n + 126 in the low bits of a float */
    const float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    x = x < -87.5f ? -87.5f : x; /* gives 0; a NaN fails both comparisons and stays */
    x = x > 89.0f ? 89.0f : x;   /* gives infinity */
    float shifted = x * 0x1.715476p0f + shift;
    float n = shifted - shift;
    float r = (x - n * ln2_high) - n * ln2_low;
    float q = 2 * 1.38146132e-3f; /* all doubled, since n may be 128 but 2¹²⁸ is no float */
    q = q * r + 2 * 8.36870982e-3f;
    q = q * r + 2 * 4.16683874e-2f;
    q = q * r + 2 * 0.166665207f;
    q = q * r + 2 * 0.499999935f;
    float twice = (q * (r * r) + (r + r)) + 2;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23; /* the exponent of 2ⁿ⁻¹, or 0 for n = −126 */
    float power;
    memcpy(&power, &bits, sizeof power);
    return twice * power;
}

/* Near 0 an odd polynomial, x + x³·p(x²) with Cephes' p, since what follows from exponentials would lose the
 * digits there; elsewhere 1 − 2/(e^2|x| + 1) with the sign of x. Within 2 units in the last place. */
VECTOR_INLINE real vector_tanh(real x) {
    float size = fabsf(x), square = x * x;
    float p = -5.70498872745e-3f;
    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    float near = p * square * x + x;
    float far = copysignf(1 - 2 / (vector_exp(2 * size) + 1), x);
    return size > 0.625f ? far : near; /* a NaN stays */
}

#endif

/* 1/(1 + e^-x) */
VECTOR_INLINE real vector_sigmoid(real x) {
    return 1 / (1 + vector_exp(-x));
}

/* x·sigmoid(x), by just this product: the backward pass, which has sigmoid(x) anyway, then finds the same
 * bits. */
VECTOR_INLINE real vector_silu(real x) {
    return x * vector_sigmoid(x);
}

/* The derivative of silu: s·(1 + x·(1 − s)) with s = sigmoid(x). */
VECTOR_INLINE real vector_silu_slope(real x) {
    real s = vector_sigmoid(x);
    return s * (1 + x * (1 - s));
}

#endif
