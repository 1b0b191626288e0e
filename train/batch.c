#include "train/batch.h"

#include "kernels/base/status.h"

/* Of a step on one rank: all of its actions are in memory. */
enum { MICRO_BATCHES_MOST = 1 << 20 };

int batch_divide(const struct train_config *train, int ranks, long *share, long *micro) {
    int batch = train->batch_size;
    if (batch % ranks)
        return gdn_fail(
            GDN_INPUT,
            "train.batch_size %d cannot be divided among %d data ranks (mesh.data, or all ranks that "
            "were started); use a multiple of %d",
            batch, ranks, ranks);
    *share = batch / ranks;
    *micro = train->micro_batch_size ? train->micro_batch_size : *share;
    if (*share % *micro)
        return gdn_fail(
            GDN_INPUT,
            "train.batch_size %d is not a multiple of train.micro_batch_size %d times %d data ranks "
            "(%ld)",
            batch, train->micro_batch_size, ranks, (long)train->micro_batch_size * ranks);
    if (*share / *micro > MICRO_BATCHES_MOST)
        return gdn_fail(
            GDN_INPUT,
            "train.batch_size %d in micro-batches of train.micro_batch_size %ld on %d data ranks is "
            "%ld of them on each; %d at most are expected",
            batch, *micro, ranks, *share / *micro, MICRO_BATCHES_MOST);
    return 0;
}
