/* How batches are divided: first among data ranks, then into micro-batches. */
#ifndef GDN_DIVIDE_H
#define GDN_DIVIDE_H

#include "train/config/config.h"

/* Sequences of the largest step on each of `ranks` data ranks, and of each micro-batch of any step. Not
 * collective. GDN_INPUT naming the batch that cannot be divided so. */
int batch_divide(const struct train_config *train, int ranks, long *share, long *micro_batch);

#endif
