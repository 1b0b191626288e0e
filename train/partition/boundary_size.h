/* Sizes of the messages between pipeline stages that are compressed (mesh.compress_boundary): a block [T, D]
 * goes as factors [T, k] and [k, D] (train/step/boundary.h). Where context ranks share sequences, T are a
 * rank's own rows, and k follows from all of theirs, which are factorised together. */
#ifndef GDN_BOUNDARY_SIZE_H
#define GDN_BOUNDARY_SIZE_H

#include "dist/layout/layout.h"
#include "train/config/config.h"

/* k, of a block with T own rows. */
long boundary_factors(const struct layout *layout, long T, long D);

/* The most elements that context ranks sum at once to compress such a block; 0 where each compresses its own.
 */
long boundary_sum(const struct layout *layout, long T, long D);

/* Elements of a message with a block of T rows. */
long boundary_elements(const struct layout *layout, long T, long D);

/* Whether compression saves anything in micro-batches of `micro_batch` sequences: GDN_INPUT where not. */
int boundary_validate(const struct config *config, long micro_batch);

#endif
