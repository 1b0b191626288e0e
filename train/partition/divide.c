#include "train/partition/divide.h"

#include <stdio.h>

#include "kernels/base/status.h"
#include "train/config/batch.h"

/* Of a step on one rank: all of its actions are in memory. */
enum { MICRO_BATCHES_MAX = 1 << 20 };

/* The smallest batch on a rank is one micro-batch, unless that is set. */
static long micro_batch_of(const struct train_config *train, int ranks) {
    long min = batch_size(train, 0);
    for (int i = 1; i < batch_sizes(train); i++)
        if (batch_size(train, i) < min) min = batch_size(train, i);
    return train->micro_batch_size ? train->micro_batch_size : min / ranks;
}

static int validate_entry(const struct train_config *train, int entry, int ranks, long micro_batch) {
    long batch = batch_size(train, entry), at_once = micro_batch * ranks;
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
                        name, batch, micro_batch,
                        train->micro_batch_size ? "" : " (the smallest batch on a rank)", ranks, at_once);
    if (batch / at_once > MICRO_BATCHES_MAX)
        return gdn_fail(GDN_INPUT,
                        "%s %ld in micro-batches of train.micro_batch_size %ld on %d data ranks is "
                        "%ld of them on each; %d at most are expected",
                        name, batch, micro_batch, ranks, batch / at_once, MICRO_BATCHES_MAX);
    if (train->noise_interval > 0 && (batch % 2 || batch / 2 % micro_batch))
        return gdn_fail(GDN_INPUT,
                        "%s %ld: half of it is no multiple of the micro-batches of %ld, but train.noise_interval "
                        "compares halves; a train.micro_batch_size that divides %ld is expected",
                        name, batch, micro_batch, batch % 2 ? batch - 1 : batch / 2);
    return 0;
}

int batch_divide(const struct train_config *train, int ranks, long *share, long *micro_batch) {
    *micro_batch = micro_batch_of(train, ranks);
    if (*micro_batch < 1) *micro_batch = 1; /* fewer sequences than ranks, which the entry's check says */
    for (int i = 0; i < batch_sizes(train); i++) TRY(validate_entry(train, i, ranks, *micro_batch));
    *share = batch_largest(train) / ranks;
    return 0;
}
