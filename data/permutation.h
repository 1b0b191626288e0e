/* A random order of 0 … n − 1 that is computed, not stored. Private to this room. */
#ifndef GDN_PERMUTATION_H
#define GDN_PERMUTATION_H

#include <stdint.h>

/* Where a permutation of n elements, one for each key, takes `index` < n. n ≥ 1. A Feistel network (Luby and
 * Rackoff, "How to construct pseudorandom permutations", SIAM J. Comput. 17, 1988) over the least power of
 * two that holds n, walked along its cycle until it is back inside (Black and Rogaway, "Ciphers with
 * arbitrary finite domains", CT-RSA 2002): less than two steps on average. */
uint64_t permutation(uint64_t key, uint64_t n, uint64_t index);

#endif
