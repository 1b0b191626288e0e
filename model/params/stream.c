#include "model/params/stream.h"

int stream_count(const struct model_config *config) {
    for (int r = 0; r < config->num_rules; r++)
        if (config->rules[r].streams) return config->rules[r].streams;
    return 1;
}

long stream_width(const struct model_config *config) {
    return (long)stream_count(config) * config->hidden_size;
}
