/* The update of a step (optimizer.h): optimizer_begin, then optimizer_update of every bucket. */
#ifndef GDN_OPTIMIZER_UPDATE_H
#define GDN_OPTIMIZER_UPDATE_H

#include "train/optimizer/optimizer.h"

/* Begins an update with gradients times `gscale`: one more step for every active row, and all that concerns
 * whole matrices. Collective over copies and the tensor axis where there are such. GDN_INTERNAL. */
int optimizer_begin(struct optimizer *optimizer, const struct edge_set *active, double gscale);
/* Updates the active rows in this rank's part of one bucket. Not collective. */
void optimizer_update(struct optimizer *optimizer, int bucket, const struct edge_set *active,
                      const struct rates *rates);

/* Bytes of memory that the update of an element with so many moments, or of a rank's part of a bucket, reads
 * and writes, for plans. */
int64_t optimizer_element_bytes(int moments);
int64_t optimizer_update_bytes(const struct bucket *bucket);

#endif
