/* Numbers of 16 and 8 bits: from and to float, on the device.
 *
 *             exponent, mantissa   largest   beyond it
 *     bf16          8, 7           3.4e38    infinity
 *     fp16          5, 10           65504    infinity
 *     e4m3          4, 3              448    the largest; an infinity becomes NaN, as there is none
 *     e5m2          5, 2            57344    the largest; an infinity stays one
 *
 * Rounded to nearest, ties to even, subnormal numbers included. Finite numbers saturate in the two of 8 bits,
 * whose scales may lag behind; what was not finite before never comes out finite, so that a run that diverges
 * shows it. NaN becomes the one NaN 0x7fff or 0x7f. The GPU's own instructions do this, but for infinities
 * in 8 bits; elsewhere the same is done on the bits. The file is C too. */
#ifndef GDN_NUMBER_H
#define GDN_NUMBER_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDA_ARCH__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

static __device__ inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static __device__ inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The code of a finite |x|, given by its bits, with an exponent that has no end. */
static __device__ inline uint32_t number_encode(uint32_t bits, int mantissa, int bias) {
    int exponent = (int)(bits >> 23) - 127 + bias, shift = 23 - mantissa;
    uint32_t code = bits - ((uint32_t)(127 - bias) << 23);
    if (exponent < 1 && bias < 127) { /* subnormal in the format: the leading one is written out */
        code = (bits & 0x7fffff) | 0x800000;
        shift += 1 - exponent;
        if (shift > 24) return 0; /* less than half of the least; subnormal floats come here too */
    }
    uint32_t half = 1u << (shift - 1);
    return (code + half - 1 + ((code >> shift) & 1)) >> shift;
}

/* The finite number of a code without a sign. */
static __device__ inline float number_decode(uint32_t code, int mantissa, int bias) {
    return float_of(code << (23 - mantissa)) * float_of((uint32_t)(254 - bias) << 23);
}

static __device__ inline uint16_t to_bf16(float x) {
#ifdef __CUDA_ARCH__
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
    uint32_t bits = bits_of(x), size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0x7fff;
    return (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)number_encode(size, 7, 127);
#endif
}

static __device__ inline float from_bf16(uint16_t code) {
    return float_of((uint32_t)code << 16);
}

static __device__ inline uint16_t to_fp16(float x) {
#ifdef __CUDA_ARCH__
    return __half_as_ushort(__float2half_rn(x));
#else
    uint32_t bits = bits_of(x), size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0x7fff;
    uint32_t code = size >= 0x477ff000 ? 0x7c00 : number_encode(size, 10, 15); /* from 65520 on: infinity */
    return (uint16_t)((bits >> 16 & 0x8000) | code);
#endif
}

static __device__ inline float from_fp16(uint16_t code) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(code));
#else
    uint32_t sign = (uint32_t)(code & 0x8000) << 16, size = code & 0x7fff;
    if (size >= 0x7c00) return float_of(sign | 0x7f800000 | (size & 0x3ff) << 13);
    return float_of(sign | bits_of(number_decode(size, 10, 15)));
#endif
}

static __device__ inline uint8_t to_e4m3(float x) {
    uint32_t bits = bits_of(x), size = bits & 0x7fffffff;
    if (size >= 0x7f800000) return 0x7f;
#ifdef __CUDA_ARCH__
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
#else
    uint32_t code = size >= 0x43e00000 ? 0x7e : number_encode(size, 3, 7); /* from 448 on */
    return (uint8_t)((bits >> 24 & 0x80) | code);
#endif
}

static __device__ inline float from_e4m3(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80) << 24, size = code & 0x7f;
    if (size == 0x7f) return float_of(0x7fffffff);
    return float_of(sign | bits_of(number_decode(size, 3, 7)));
}

static __device__ inline uint8_t to_e5m2(float x) {
    uint32_t bits = bits_of(x), size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0x7f;
    if (size == 0x7f800000) return (uint8_t)((bits >> 24 & 0x80) | 0x7c);
#ifdef __CUDA_ARCH__
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
#else
    uint32_t code = size >= 0x47600000 ? 0x7b : number_encode(size, 2, 15); /* from 57344 on */
    return (uint8_t)((bits >> 24 & 0x80) | code);
#endif
}

static __device__ inline float from_e5m2(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80) << 24, size = code & 0x7f;
    if (size >= 0x7c) return float_of(sign | 0x7f800000 | (size & 3) << 21);
    return float_of(sign | bits_of(number_decode(size, 2, 15)));
}

#endif
