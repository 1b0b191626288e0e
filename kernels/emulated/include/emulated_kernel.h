/* What kernels see of the emulated device: qualifiers, indices, barriers, warps, integer atomics, vector
 * types.
 *
 * Barriers and warp operations carry their line of source, so that threads which meet at different ones are
 * told apart. Sums in floating point by atomics are missing on purpose: their order is not fixed. */
#ifndef GDN_EMULATED_KERNEL_H
#define GDN_EMULATED_KERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
/* The variables of all blocks are the same ones, as blocks run one after another; a module's thread-local
 * memory is one piece, which is filled with NaN before each block. Hence nothing else in the module may be
 * thread-local. */
#define __shared__ static thread_local

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#define EMULATED_VECTORS(type, name)                                                                         \
    struct __align__(2 * sizeof(type)) name##2 {                                                             \
        type x, y;                                                                                           \
    };                                                                                                       \
    struct name##3 {                                                                                         \
        type x, y, z;                                                                                        \
    };                                                                                                       \
    struct __align__(sizeof(type) == 8 ? 16 : 4 * sizeof(type)) name##4 {                                    \
        type x, y, z, w;                                                                                     \
    };                                                                                                       \
    static inline name##2 make_##name##2(type x, type y) {                                                   \
        return {x, y};                                                                                       \
    }                                                                                                        \
    static inline name##4 make_##name##4(type x, type y, type z, type w) {                                   \
        return {x, y, z, w};                                                                                 \
    }
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
EMULATED_VECTORS(int, int)
#undef EMULATED_VECTORS
struct __align__(8) uint2 {
    unsigned x, y;
};
struct __align__(16) uint4 {
    unsigned x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* ------------------------------------------------------------------ waiting for each other */

enum emulated_exchange { EMULATED_SYNC, EMULATED_SHUFFLE, EMULATED_BALLOT };

void emulated_barrier(int line);
/* Waits for the other lanes of `mask`; returns what the lane `source` brought, or the ballot. */
uint64_t emulated_meet(enum emulated_exchange kind, int line, unsigned mask, uint64_t value, int source);
int emulated_lane(void);
void *emulated_dynamic_shared(void);

#define __syncthreads() emulated_barrier(__LINE__)
#define __syncwarp(...) emulated_syncwarp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __ballot_sync(mask, predicate)                                                                       \
    ((unsigned)emulated_meet(EMULATED_BALLOT, __LINE__, mask, (predicate) ? 1 : 0, 0))
#define __any_sync(mask, predicate) (__ballot_sync(mask, predicate) != 0)
#define __all_sync(mask, predicate) (__ballot_sync(mask, !(predicate)) == 0)
#define __shfl_sync(...) emulated_shfl(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) emulated_shfl_xor(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) emulated_shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) emulated_shfl_up(__LINE__, __VA_ARGS__)

static inline void emulated_syncwarp(int line, unsigned mask = 0xffffffffu) {
    emulated_meet(EMULATED_SYNC, line, mask, 0, 0);
}

template <typename T> static inline T emulated_shuffle(int line, unsigned mask, T value, int source) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "shuffles carry up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulated_meet(EMULATED_SHUFFLE, line, mask, bits, source);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Where a shuffle would leave its `width` lanes, a lane gets its own value, as CUDA has it. */
template <typename T>
static inline T emulated_shfl(int line, unsigned mask, T value, int lane, int width = 32) {
    int first = emulated_lane() & -width;
    return emulated_shuffle(line, mask, value, first + (lane & (width - 1)));
}

template <typename T>
static inline T emulated_shfl_xor(int line, unsigned mask, T value, int flip, int width = 32) {
    int me = emulated_lane(), from = me ^ flip;
    return emulated_shuffle(line, mask, value, from < (me & -width) + width ? from : me);
}

template <typename T>
static inline T emulated_shfl_down(int line, unsigned mask, T value, unsigned by, int width = 32) {
    int me = emulated_lane(), from = me + (int)by;
    return emulated_shuffle(line, mask, value, from < (me & -width) + width ? from : me);
}

template <typename T>
static inline T emulated_shfl_up(int line, unsigned mask, T value, unsigned by, int width = 32) {
    int me = emulated_lane(), from = me - (int)by;
    return emulated_shuffle(line, mask, value, from >= (me & -width) ? from : me);
}

static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

/* ---------------------------------------------- integer atomics: threads run one at a time */

template <typename T, typename F> static inline T emulated_atomic(T *at, F change) {
    static_assert(T(0.5f) == 0, "the order of floating-point atomics is not fixed");
    T old = *at;
    *at = change(old);
    return old;
}
template <typename T> static inline T atomicAdd(T *at, T x) {
    return emulated_atomic(at, [=](T o) { return T(o + x); });
}
template <typename T> static inline T atomicMax(T *at, T x) {
    return emulated_atomic(at, [=](T o) { return o > x ? o : x; });
}
template <typename T> static inline T atomicMin(T *at, T x) {
    return emulated_atomic(at, [=](T o) { return o < x ? o : x; });
}
template <typename T> static inline T atomicOr(T *at, T x) {
    return emulated_atomic(at, [=](T o) { return T(o | x); });
}
template <typename T> static inline T atomicExch(T *at, T x) {
    return emulated_atomic(at, [=](T) { return x; });
}
template <typename T> static inline T atomicCAS(T *at, T expected, T x) {
    return emulated_atomic(at, [=](T o) { return o == expected ? x : o; });
}

/* ------------------------------------------------------------------ small functions */

template <typename T> static inline T __ldg(const T *at) {
    return *at;
}

template <typename T, typename F> static inline T emulated_bits(F from) {
    static_assert(sizeof(T) == sizeof(F), "");
    T to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float x) {
    return emulated_bits<unsigned>(x);
}
static inline int __float_as_int(float x) {
    return emulated_bits<int>(x);
}
static inline float __uint_as_float(unsigned x) {
    return emulated_bits<float>(x);
}
static inline float __int_as_float(int x) {
    return emulated_bits<float>(x);
}
static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}
static inline double rsqrt(double x) {
    return 1 / sqrt(x);
}

#define EMULATED_MIN_MAX(type)                                                                               \
    static inline type min(type a, type b) {                                                                 \
        return a < b ? a : b;                                                                                \
    }                                                                                                        \
    static inline type max(type a, type b) {                                                                 \
        return a > b ? a : b;                                                                                \
    }
EMULATED_MIN_MAX(int)
EMULATED_MIN_MAX(unsigned)
EMULATED_MIN_MAX(long)
EMULATED_MIN_MAX(unsigned long)
EMULATED_MIN_MAX(long long)
EMULATED_MIN_MAX(unsigned long long)
#undef EMULATED_MIN_MAX
static inline float min(float a, float b) {
    return fminf(a, b);
}
static inline float max(float a, float b) {
    return fmaxf(a, b);
}
static inline double min(double a, double b) {
    return fmin(a, b);
}
static inline double max(double a, double b) {
    return fmax(a, b);
}

#endif
