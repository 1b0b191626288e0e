/* Everything random is a function of its place: counter-based numbers keyed by (seed, what, index), so
 * that a mesh, a restart or a thread count changes nothing. Philox4x32-10 of Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3" (SC 2011). */
#ifndef GDN_RANDOM_H
#define GDN_RANDOM_H

#include <stdint.h>

/* 64-bit FNV-1a of a name: the `what` of the functions below. */
uint64_t random_name(const char *name);

/* 64 random bits for (seed, what, index). */
uint64_t random_bits(uint64_t seed, uint64_t what, uint64_t index);

/* Uniform in [0, 1) with 53 bits. */
double random_uniform(uint64_t seed, uint64_t what, uint64_t index);

/* Standard normal (Box-Muller over one counter). */
double random_normal(uint64_t seed, uint64_t what, uint64_t index);

#endif
