/* Batches: how many sequences a step has (train.batch_size, train.batch_ramp). */
#ifndef GDN_BATCH_H
#define GDN_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "train/config/config.h"

/* Sizes that batches have one after the other: the entries of train.batch_ramp, or train.batch_size alone. */
int batch_sizes(const struct train_config *train);
long batch_size(const struct train_config *train, int entry);

/* Sequences of the step that follows `step` steps; of the largest batch; of all steps from `from` to `to`,
 * and their tokens (INT64_MAX where they are more). */
long batch_at(const struct train_config *train, int64_t step);
long batch_largest(const struct train_config *train);
double batch_sum(const struct train_config *train, int64_t from, int64_t to);
int64_t batch_tokens(const struct train_config *train, int64_t from, int64_t to);

/* "32 sequences", or "32 sequences, 64 from step 1000 on". */
void batch_text(const struct train_config *train, char *text, size_t size);

#endif
