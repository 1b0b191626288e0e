/* bf16: a float without the lower 16 bits of its mantissa, so 8 significant bits and a float's range.
 * Rounding is to the nearest, ties to even; what is too large becomes infinity, and each NaN the one NaN 0x7fff,
 * as on devices (kernels/cuda/number.h). Without branches, so that loops over these become vectors. */
#ifndef GDN_BF16_H
#define GDN_BF16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/base/real.h"

/* A product of which m, n or k is smaller than this stays fp32 on the host, but for those by rows: rounding
 * its operands would take longer than multiplying them saves. Of a whole product, so that threads change
 * nothing. */
enum { BF16_LEAST = 64 };

static inline bool bf16_pays(long m, long n, long k) {
    return m >= BF16_LEAST && n >= BF16_LEAST && k >= BF16_LEAST;
}

/* Of products by rows (gemm_rows), for which B is rounded once: whatever parts of its rows are multiplied
 * together. */
static inline bool bf16_pays_rows(long k) {
    return k >= BF16_LEAST;
}

/* Attention's rows are rounded where they are multiplied, in tiles, so that narrower heads pay, too. */
enum { BF16_LEAST_HEAD = 32 };

static inline bool bf16_pays_attention(long queries, long keys, long head_width) {
    return queries >= BF16_LEAST && keys >= BF16_LEAST && head_width >= BF16_LEAST_HEAD;
}

/* What rounding may do to a number, of itself. */
#define BF16_EPSILON 0x1p-8

/* Of a float given by its bits. */
static inline uint16_t bf16_of_bits(uint32_t bits) {
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

static inline uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bf16_of_bits(bits);
}

/* Of a `real`: of a double, too, by a single rounding. Of what lies between floats that takes the one towards
 * zero, with its last bit set, which tells the rounding that there is more. */
static inline uint16_t bf16_of(real x) {
#ifdef GDN_DOUBLE
    float near = (float)x;
    double back = near;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    uint32_t beyond = (back < 0 ? -back : back) > (x < 0 ? -x : x), inexact = back < x || back > x;
    return bf16_of_bits((bits - beyond) | inexact);
#else
    return to_bf16(x);
#endif
}

static inline float from_bf16(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The bf16 next to x. */
static inline real bf16_round(real x) {
    return from_bf16(bf16_of(x));
}

#endif
