#include "model/params/stream.h"

long stream_width(const struct model_config *config) {
    return config->hidden_size;
}
