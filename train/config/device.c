#include "train/config/config.h"

bool config_on_host(const struct config *config) {
    return config->device == DEVICE_CPU || config->device == DEVICE_AUTO;
}

long config_weight_copy(const struct config *config) {
    return weight_copy_bytes(config_on_host(config), (enum precision)config->train.precision);
}
