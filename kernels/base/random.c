#include "kernels/base/random.h"

#include <math.h>

uint64_t random_name(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

uint64_t random_bits(uint64_t seed, uint64_t what, uint64_t index) {
    uint32_t o[4];
    random_philox(seed, what, index, o);
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
    random_philox(seed, what, index, o);
    double u = 1.0 - unit((uint64_t)o[1] << 32 | o[0]); /* (0, 1]: the logarithm is finite */
    double v = unit((uint64_t)o[3] << 32 | o[2]);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}
