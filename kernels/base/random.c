#include "kernels/base/random.h"

#include <math.h>

uint64_t random_name(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* Ten rounds of Philox4x32: counter (index, what), key seed. */
static void philox(uint64_t seed, uint64_t what, uint64_t index, uint32_t out[4]) {
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

uint64_t random_bits(uint64_t seed, uint64_t what, uint64_t index) {
    uint32_t o[4];
    philox(seed, what, index, o);
    return (uint64_t)o[1] << 32 | o[0];
}

static double unit(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-53;
}

double random_uniform(uint64_t seed, uint64_t what, uint64_t index) {
    return unit(random_bits(seed, what, index));
}

double random_normal(uint64_t seed, uint64_t what, uint64_t index) {
    uint32_t o[4];
    philox(seed, what, index, o);
    double u = 1.0 - unit((uint64_t)o[1] << 32 | o[0]); /* (0, 1]: the logarithm is finite */
    double v = unit((uint64_t)o[3] << 32 | o[2]);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}
