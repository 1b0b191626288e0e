#include "train/config/batch.h"

#include "kernels/base/append.h"

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
    long max = 0;
    for (int i = 0; i < batch_sizes(train); i++)
        if (batch_size(train, i) > max) max = batch_size(train, i);
    return max;
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

void batch_text(const struct train_config *train, char *text, size_t size) {
    size_t used = text_append(text, size, 0, "%ld sequences", batch_size(train, 0));
    for (int i = 1; i < train->num_ramp; i++)
        used = text_append(text, size, used, ", %ld from step %ld on", batch_size(train, i),
                           train->batch_ramp[i][RAMP_STEP]);
}
