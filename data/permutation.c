#include "data/permutation.h"

#include "kernels/base/random.h"

enum { ROUNDS = 8 }; /* four make it pseudorandom when halves are long; small n needs more to mix */

/* A permutation of 0 … 2^bits − 1: each half in turn is changed by a random function of the other, which the
 * other, still at hand, can undo. */
static uint64_t feistel(uint64_t key, int bits, uint64_t x) {
    int low_bits = bits / 2;
    uint64_t low_mask = (1ull << low_bits) - 1, high_mask = (1ull << (bits - low_bits)) - 1;
    uint64_t low = x & low_mask, high = x >> low_bits;
    for (uint64_t round = 0; round < ROUNDS; round += 2) {
        high ^= random_bits(key, round, low) & high_mask;
        low ^= random_bits(key, round + 1, high) & low_mask;
    }
    return high << low_bits | low;
}

uint64_t permutation(uint64_t key, uint64_t n, uint64_t index) {
    if (n <= 1) return 0;
    int bits = 64 - __builtin_clzll(n - 1);
    do index = feistel(key, bits, index);
    while (index >= n);
    return index;
}
