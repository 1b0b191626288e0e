#include "train/partition/batch.h"

#include <stdio.h>

#include "kernels/base/status.h"

/* Of a step on one rank: all of its actions are in memory. */
enum { MICRO_BATCHES_MOST = 1 << 20 };

int batch_sizes(const struct train_config *train) {
    return train->num_ramp ? train->num_ramp : 1;
}

long batch_size(const struct train_config *train, int entry) {
    return train->num_ramp ? train->batch_ramp[entry][RAMP_SIZE] : train->batch_size;
}

/* The steps that an entry holds for: from … *end. */
static int64_t first_of(const struct train_config *train, int entry, int64_t *end) {
    *end = entry + 1 < train->num_ramp ? train->batch_ramp[entry + 1][RAMP_STEP] : INT64_MAX;
    return entry ? train->batch_ramp[entry][RAMP_STEP] : 0;
}

long batch_at(const struct train_config *train, int64_t step) {
    int entry = 0;
    for (int64_t end; first_of(train, entry, &end), end <= step;) entry++;
    return batch_size(train, entry);
}

long batch_largest(const struct train_config *train) {
    long most = 0;
    for (int i = 0; i < batch_sizes(train); i++)
        if (batch_size(train, i) > most) most = batch_size(train, i);
    return most;
}

double batch_sum(const struct train_config *train, int64_t from, int64_t to) {
    double sum = 0;
    for (int i = 0; i < batch_sizes(train); i++) {
        int64_t end, first = first_of(train, i, &end);
        if (first < from) first = from;
        if (end > to) end = to;
        if (first < end) sum += (double)(end - first) * (double)batch_size(train, i);
    }
    return sum;
}

int64_t batch_tokens(const struct train_config *train, int64_t from, int64_t to) {
    double tokens = batch_sum(train, from, to) * train->sequence_length;
    return tokens < 0x1p63 ? (int64_t)tokens : INT64_MAX;
}

/* The smallest batch on a rank is one micro-batch, unless that is set. */
static long micro_of(const struct train_config *train, int ranks) {
    long least = batch_size(train, 0);
    for (int i = 1; i < batch_sizes(train); i++)
        if (batch_size(train, i) < least) least = batch_size(train, i);
    return train->micro_batch_size ? train->micro_batch_size : least / ranks;
}

static int check_entry(const struct train_config *train, int entry, int ranks, long micro) {
    long batch = batch_size(train, entry), at_once = micro * ranks;
    char name[64] = "train.batch_size";
    if (train->num_ramp)
        snprintf(name, sizeof name, "train.batch_ramp[%d], from step %ld on,", entry,
                 train->batch_ramp[entry][RAMP_STEP]);
    if (batch % ranks)
        return gdn_fail(GDN_INPUT,
                        "%s %ld cannot be divided among %d data ranks (mesh.data, or all ranks that "
                        "were started); use a multiple of %d",
                        name, batch, ranks, ranks);
    if (batch % at_once)
        return gdn_fail(GDN_INPUT,
                        "%s %ld is not a multiple of train.micro_batch_size %ld%s times %d data ranks (%ld)",
                        name, batch, micro, train->micro_batch_size ? "" : " (the smallest batch on a rank)",
                        ranks, at_once);
    if (batch / at_once > MICRO_BATCHES_MOST)
        return gdn_fail(GDN_INPUT,
                        "%s %ld in micro-batches of train.micro_batch_size %ld on %d data ranks is "
                        "%ld of them on each; %d at most are expected",
                        name, batch, micro, ranks, batch / at_once, MICRO_BATCHES_MOST);
    return 0;
}

int batch_divide(const struct train_config *train, int ranks, long *share, long *micro) {
    *micro = micro_of(train, ranks);
    if (*micro < 1) *micro = 1; /* fewer sequences than ranks, which the entry's check says */
    for (int i = 0; i < batch_sizes(train); i++) TRY(check_entry(train, i, ranks, *micro));
    *share = batch_largest(train) / ranks;
    return 0;
}

void batch_words(const struct train_config *train, char *words, size_t size) {
    size_t used = (size_t)snprintf(words, size, "%ld sequences", batch_size(train, 0));
    for (int i = 1; i < train->num_ramp && used < size; i++)
        used += (size_t)snprintf(words + used, size - used, ", %ld from step %ld on", batch_size(train, i),
                                 train->batch_ramp[i][RAMP_STEP]);
}
