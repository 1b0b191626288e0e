#include "data/hdf5/sum.h"
#include "kernels/base/hash.h"

#include <stdbool.h>
#include <string.h>

/* A loop for each width, which compilers make vectors of. */
#define SUM(type)                                                                                            \
    do {                                                                                                     \
        const unsigned char *bytes = elements;                                                               \
        _Pragma("omp simd reduction(+ : sum)") for (long i = 0; i < count; i++) {                            \
            type bits;                                                                                       \
            memcpy(&bits, bytes + (size_t)i * sizeof bits, sizeof bits);                                     \
            sum += hash_mix(first + (uint64_t)i * advance + bits);                                           \
        }                                                                                                    \
    } while (0)

/* The multiplications want wide vectors: 26 GB/s of floats on one core with AVX-512, 2.4 with SSE2. So the
 * loops are compiled once for each instruction set, and a call takes the best that the processor has. (Not by
 * target_clones: those are chosen before main, when a sanitizer's runtime is not there yet.) */
static inline __attribute__((always_inline)) uint64_t
sum_loops(const void *elements, size_t element, long count, uint64_t first, uint64_t advance) {
    uint64_t sum = 0;
    switch (element) {
    case 1:
        SUM(uint8_t);
        break;
    case 2:
        SUM(uint16_t);
        break;
    case 4:
        SUM(uint32_t);
        break;
    default:
        SUM(uint64_t);
        break;
    }
    return sum;
}

typedef uint64_t sum_fn(const void *elements, size_t element, long count, uint64_t first, uint64_t advance);

#define VERSION(name, ...)                                                                                   \
    __VA_ARGS__ static uint64_t name(const void *elements, size_t element, long count, uint64_t first,       \
                                     uint64_t advance) {                                                     \
        return sum_loops(elements, element, count, first, advance);                                          \
    }

VERSION(sum_plain)

#if defined(__x86_64__) && defined(__GNUC__)
VERSION(sum_avx2, __attribute__((target("avx2"))))
VERSION(sum_avx512, __attribute__((target("avx2,avx512f,avx512vl,avx512bw,avx512dq"))))

static sum_fn *choose(void) {
    if (!__builtin_cpu_supports("avx2")) return sum_plain;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return wide ? sum_avx512 : sum_avx2;
}
#else
static sum_fn *choose(void) {
    return sum_plain;
}
#endif

uint64_t sum_elements(const void *elements, size_t element, long count, uint64_t index, uint64_t step) {
    return choose()(elements, element, count, index * HASH_PLACE, step * HASH_PLACE);
}
