/* Everything random is a function of its place: counter-based numbers keyed by (seed, what, index), so
 * that a mesh, a restart or a thread count changes nothing. Philox4x32-10 of Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3" (SC 2011). */
#ifndef GDN_RANDOM_H
#define GDN_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__
#define RANDOM_EVERYWHERE __host__ __device__
#else
#define RANDOM_EVERYWHERE
#endif

/* Ten rounds of Philox4x32: counter (index, what), key seed. On a GPU too. */
static RANDOM_EVERYWHERE inline void random_philox(uint64_t seed, uint64_t what, uint64_t index,
                                                   uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)what, (uint32_t)(what >> 32)};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = n0, c[1] = (uint32_t)p1, c[2] = n2, c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++) out[i] = c[i];
}

/* 64-bit FNV-1a of a name: the `what` of the functions below. */
uint64_t random_name(const char *name);

/* 64 random bits for (seed, what, index). */
uint64_t random_bits(uint64_t seed, uint64_t what, uint64_t index);

/* Uniform in [0, 1) with 53 bits. */
double random_uniform(uint64_t seed, uint64_t what, uint64_t index);

/* Standard normal (Box-Muller over one counter). */
double random_normal(uint64_t seed, uint64_t what, uint64_t index);

#endif
