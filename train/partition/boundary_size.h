/* Sizes of the messages between pipeline stages that are compressed (mesh.compress_boundary): a block [T, D]
 * goes as factors [T, k] and [k, D] (train/step/boundary.h). */
#ifndef GDN_BOUNDARY_SIZE_H
#define GDN_BOUNDARY_SIZE_H

#include "dist/layout/layout.h"
#include "train/config/config.h"

/* Elements of a message with a block of T rows. */
long boundary_elements(const struct layout *layout, long T, long D);

/* Whether compression saves anything in micro-batches of `micro_batch` sequences: GDN_INPUT where not. */
int boundary_validate(const struct config *config, long micro_batch);

#endif
