#include "model/params/dropout.h"

#include <math.h>

#include "kernels/base/random.h"

bool dropout_on(const struct dropout_config *dropout) {
    return dropout->residual > 0 || dropout->attention > 0 || dropout->gate > 0 || dropout->layer > 0;
}

uint64_t dropout_key(uint64_t seed, int64_t step) {
    return random_bits(seed, random_name("dropout"), (uint64_t)step);
}

bool dropout_leaves_out(const struct model_config *config, uint64_t key, int layer) {
    const int last = config->num_layers - 1;
    if (!(config->dropout.layer > 0) || !last) return false;
    const double rate = config->dropout.layer * (exp2((double)layer / last) - 1);
    return random_uniform(key, random_name("dropout.layer"), (uint64_t)layer) < rate;
}
