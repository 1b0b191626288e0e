/* The number that an element gives to a checksum of a tensor: a function of its bits and its place, so that
 * parts of a tensor can be summed by anybody in any order (data/hdf5/sum.h says more); and the hash of a table's
 * keys. C and CUDA. */
#ifndef GDN_HASH_H
#define GDN_HASH_H

#include <stdint.h>
#include <string.h>

#include "kernels/base/real.h"

#ifdef __CUDACC__
#define HASH_FUNCTION __host__ __device__ static inline
#else
#define HASH_FUNCTION static inline
#endif

/* The finalizer of SplitMix64 (Steele, Lea and Flood 2014). */
HASH_FUNCTION uint64_t hash_mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#define HASH_PLACE 0x9e3779b97f4a7c15u /* 2⁶⁴/φ */

/* Of the element's bits as an unsigned number, and its index in row-major order. */
HASH_FUNCTION uint64_t hash_bits(uint64_t bits, uint64_t place) {
    return hash_mix(place * HASH_PLACE + bits);
}

/* Where a table of shapes looks for one first: of the words of a key that is made of nothing else. */
HASH_FUNCTION uint64_t hash_words(const int64_t *word, int words) {
    uint64_t hash = 0;
    for (int i = 0; i < words; i++) hash = hash_mix((hash ^ (uint64_t)word[i]) + HASH_PLACE);
    return hash;
}

HASH_FUNCTION uint64_t hash_element(real element, uint64_t place) {
#ifdef GDN_DOUBLE
    uint64_t bits;
#else
    uint32_t bits;
#endif
    memcpy(&bits, &element, sizeof bits);
    return hash_bits(bits, place);
}

#endif
