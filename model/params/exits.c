#include "model/params/exits.h"

int exit_of(const struct model_config *config, int layer) {
    for (int i = 0; i < config->exit.num_layers; i++)
        if (config->exit.layers[i] == layer) return i;
    return -1;
}

void exit_weights(const struct exit_config *exit, int64_t step, long steps, double *weight) {
    const int n = exit->num_layers;
    for (int i = 0; i < n; i++) {
        weight[i] = exit->weights[i];
        if (exit->curriculum == CURRICULUM_ROTATE) weight[i] = step % n == i ? n * exit->weights[i] : 0;
        /* From the deepest up, over half of the training. */
        if (exit->curriculum == CURRICULUM_GRADUAL && step * 2 * n < (int64_t)(n - 1 - i) * steps) weight[i] = 0;
    }
}

double exit_share(const struct exit_config *exit) {
    return exit->curriculum == CURRICULUM_ROTATE ? 1.0 / exit->num_layers : 1;
}
