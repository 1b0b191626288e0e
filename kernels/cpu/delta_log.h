/* The natural logarithm for vectorised loops (as in vector_math.h), and the entropies made of it. */
#ifndef GDN_DELTA_LOG_H
#define GDN_DELTA_LOG_H

#include "kernels/cpu/vector_math.h"

#ifdef GDN_DOUBLE

VECTOR_INLINE real vector_log(real x) {
    return log(x);
}

#else

/* ln x of a positive, normal, finite x = 2ᵉ·m with m in [√½, √2): e·ln 2 + 2·artanh(s), s = (m − 1)/(m + 1).
 * |s| stays below 0.172, so the series to s⁹ is off by 2e-9 of the result. */
VECTOR_INLINE real vector_log(real x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (int32_t)(bits - 0x3F3504F3u) >> 23; /* the bits of √½ */
    bits -= (uint32_t)e << 23;
    float m;
    memcpy(&m, &bits, sizeof m);
    float s = (m - 1) / (m + 1), z = s * s;
    float p = 2.0f / 9;
    p = p * z + 2.0f / 7;
    p = p * z + 2.0f / 5;
    p = p * z + 2.0f / 3;
    p = p * z + 2.0f;
    return (float)e * 0x1.62e43p-1f + s * p;
}

#endif

#define INV_LN2 ((real)1.4426950408889634)
#define GATE_MIN ((real)1e-7) /* clamp of a gate, and of 1 − gate, in its entropy */
#define GATE_MAX ((real)(1 - 1e-7))
#define PROBABILITY_MIN ((real)1e-30) /* clamp of a probability in its logarithm */

/* −(g·log₂ g + (1 − g)·log₂(1 − g)), clamped. */
VECTOR_INLINE real gate_entropy(real g) {
    real a = g < GATE_MIN ? GATE_MIN : g, b = 1 - g < GATE_MIN ? GATE_MIN : 1 - g;
    a = a > GATE_MAX ? GATE_MAX : a;
    b = b > GATE_MAX ? GATE_MAX : b;
    return -INV_LN2 * (a * vector_log(a) + b * vector_log(b));
}

/* Its derivative, 0 outside the clamp. */
VECTOR_INLINE real gate_entropy_slope(real g) {
    real a = g < GATE_MIN ? GATE_MIN : g;
    a = a > GATE_MAX ? GATE_MAX : a;
    real slope = INV_LN2 * vector_log((1 - a) / a);
    return a == g ? slope : 0;
}

/* −p·ln(max(p, 1e-30)) */
VECTOR_INLINE real probability_entropy(real p) {
    return -p * vector_log(p < PROBABILITY_MIN ? PROBABILITY_MIN : p);
}

/* Its derivative. */
VECTOR_INLINE real probability_entropy_slope(real p) {
    real clamped = p < PROBABILITY_MIN ? PROBABILITY_MIN : p;
    return -vector_log(clamped) - (p < PROBABILITY_MIN ? (real)0 : (real)1);
}

#endif
