/* What a message between pipeline stages carries. Stated once: for the executor, which sends it, and for
 * plans. */
#ifndef GDN_MESSAGE_SIZE_H
#define GDN_MESSAGE_SIZE_H

#include "dist/schedule/schedule.h"
#include "model/params/config.h"

/* Columns of what a payload's buffers hold [T, columns]. */
long payload_columns(const struct model_config *config, const struct layout *layout, enum payload payload);

/* Does it go as low-rank factors (boundary.h)? Then it lies on the host. */
bool message_is_compressed(const struct layout *layout, enum payload payload);

/* Elements of a message with `rows` rows of so many columns. */
long message_elements(const struct layout *layout, enum payload payload, long rows, long columns);

#endif
