/* bf16: a float without the lower 16 bits of its mantissa, so 8 significant bits and a float's range.
 * Rounding is to the nearest, ties to even; what is too large becomes infinity, and a NaN stays one. */
#ifndef GDN_BF16_H
#define GDN_BF16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/base/real.h"

/* A product of which m, n or k is smaller than this stays fp32 on the host: rounding its operands would take
 * longer than multiplying them saves. Of a whole product, so that threads change nothing. */
enum { BF16_LEAST = 64 };

static inline bool bf16_pays(long m, long n, long k) {
    return m >= BF16_LEAST && n >= BF16_LEAST && k >= BF16_LEAST;
}

static inline uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

static inline float from_bf16(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The bf16 next to x; of a double that next to its float. */
static inline real bf16_round(real x) {
    return from_bf16(to_bf16((float)x));
}

#endif
