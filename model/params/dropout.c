#include "model/params/dropout.h"

#include "kernels/base/random.h"

bool dropout_on(const struct dropout_config *dropout) {
    return dropout->residual > 0 || dropout->attention > 0 || dropout->gate > 0;
}

uint64_t dropout_key(uint64_t seed, int64_t step) {
    return random_bits(seed, random_name("dropout"), (uint64_t)step);
}
