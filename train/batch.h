/* How a step's batch is divided: first among data ranks, then into micro-batches. */
#ifndef GDN_BATCH_H
#define GDN_BATCH_H

#include "train/config.h"

/* Sequences of a step on each of `ranks` data ranks, and of each of its micro-batches. Not collective.
 * GDN_INPUT where the batch cannot be divided so. */
int batch_divide(const struct train_config *train, int ranks, long *share, long *micro);

#endif
