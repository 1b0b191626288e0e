#include "data/safetensors/dtype.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A finite number that a shorter type has no room for. */
static bool lost(real value, bool infinite) {
    return infinite && isfinite(value);
}

static void load_float32(const void *stored, size_t n, real *out) {
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, (const char *)stored + i * sizeof value, sizeof value);
        out[i] = value;
    }
}

static size_t store_float32(const real *values, size_t n, void *out) {
    size_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        float value = (float)values[i];
        beyond += lost(values[i], isinf(value));
        memcpy((char *)out + i * sizeof value, &value, sizeof value);
    }
    return beyond;
}

/* The upper half of a float32. */
static void load_bfloat16(const void *stored, size_t n, real *out) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, (const char *)stored + i * sizeof half, sizeof half);
        out[i] = float_of((uint32_t)half << 16);
    }
}

static size_t store_bfloat16(const real *values, size_t n, void *out) {
    size_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of((float)values[i]);
        uint16_t half = isnan(values[i]) ? (uint16_t)(bits >> 16 | 0x40) /* which rounding might undo */
                                         : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        beyond += lost(values[i], (half & 0x7fff) == 0x7f80);
        memcpy((char *)out + i * sizeof half, &half, sizeof half);
    }
    return beyond;
}

/* 1 bit of sign, 5 of exponent, 10 of fraction. */
static float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    float value = ldexpf((float)fraction, -24); /* below the least normal number */
    return sign ? -value : value;
}

static uint16_t float_to_half(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00); /* not a number */
    if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) /* counted in units of 2^-24; rintf: to the nearest, ties to even */
        return (uint16_t)(sign | (uint32_t)rintf(ldexpf(float_of(magnitude), 24)));
    magnitude -= 112u << 23;
    return (uint16_t)(sign | (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

static void load_float16(const void *stored, size_t n, real *out) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, (const char *)stored + i * sizeof half, sizeof half);
        out[i] = half_to_float(half);
    }
}

static size_t store_float16(const real *values, size_t n, void *out) {
    size_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        uint16_t half = float_to_half((float)values[i]);
        beyond += lost(values[i], (half & 0x7fff) == 0x7c00);
        memcpy((char *)out + i * sizeof half, &half, sizeof half);
    }
    return beyond;
}

static const struct dtype rows[] = {
    {"F32", "float32", 4, load_float32, store_float32},
    {"BF16", "bfloat16", 2, load_bfloat16, store_bfloat16},
    {"F16", "float16", 2, load_float16, store_float16},
    {"F64", "float64", 8, NULL, NULL},
    {"F8_E5M2", "float8_e5m2", 1, NULL, NULL},
    {"F8_E4M3", "float8_e4m3fn", 1, NULL, NULL},
    {"I64", "int64", 8, NULL, NULL},
    {"I32", "int32", 4, NULL, NULL},
    {"I16", "int16", 2, NULL, NULL},
    {"I8", "int8", 1, NULL, NULL},
    {"U64", "uint64", 8, NULL, NULL},
    {"U32", "uint32", 4, NULL, NULL},
    {"U16", "uint16", 2, NULL, NULL},
    {"U8", "uint8", 1, NULL, NULL},
    {"BOOL", "bool", 1, NULL, NULL},
};
enum { ROWS = sizeof rows / sizeof *rows };

const struct dtype *dtype_named(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}

const struct dtype *dtype_of_word(const char *word) {
    for (int i = 0; i < ROWS; i++)
        if (rows[i].load && !strcmp(rows[i].word, word)) return &rows[i];
    return NULL;
}
