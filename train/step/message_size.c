#include "train/step/message_size.h"

#include "model/model.h"
#include "model/params/stream.h"
#include "train/partition/boundary_size.h"

long payload_columns(const struct model_config *config, const struct layout *layout, enum payload payload) {
    return payload_is_narrow(payload) ? projected_width(config, layout) : stream_width(config);
}

bool message_is_compressed(const struct layout *layout, enum payload payload) {
    return layout->compress > 0 && !payload_is_narrow(payload);
}

long message_elements(const struct layout *layout, enum payload payload, long rows, long columns) {
    return message_is_compressed(layout, payload) ? boundary_elements(layout, rows, columns) : rows * columns;
}
