/* The run's data: where samples come from. */
#include "train/run/run.h"

#include "train/config/batch.h"
#include "train/evaluation/data_part.h"

#include <stdlib.h>
#include <xxhash.h>

static int open_data(struct run *run) {
    const struct config *config = &run->config;
    TRY(config_validate_for_training(config));
    int status = data_part_open(config, &config->data.train, config->data.order == ORDER_SHUFFLE, 0,
                                1 - data_held_out(&config->data), &run->data.sampler);
    TRY(gdn_fail_in(status, "%s with train.sequence_length %d",
                    config->data.train.count ? "data.train" : "data.sources", config->train.sequence_length));
    TRY(validation_open(config, &run->data.validation));
    run->data.rows = malloc((size_t)run->part.share * (size_t)(config->train.sequence_length + 1) *
                            sizeof *run->data.rows);
    if (!run->data.rows)
        return gdn_fail(GDN_INTERNAL, "out of memory for a batch of %ld sequences", run->part.share);
    return run_read_batch(run);
}

long run_share(const struct run *run) {
    return batch_at(&run->config.train, run->position.step) / run->mesh.data.size;
}

int run_read_batch(struct run *run) {
    int vocab = run->config.model.vocab_size;
    long share = run_share(run);
    return gdn_fail_in(sampler_read(run->data.sampler, run->position.samples + run->mesh.data.index * share,
                                    share, vocab, run->data.rows),
                       "training data for model.vocab_size %d", vocab);
}

/* Every node may have files of its own: ranks that read the same samples must have read the same tokens, and
 * all must find as many samples. Collective. */
static int agree_on_data(struct run *run) {
    long samples = sampler_epoch(run->data.sampler), first_samples = samples;
    size_t bytes =
        (size_t)run_share(run) * (size_t)(run->config.train.sequence_length + 1) * sizeof *run->data.rows;
    uint64_t mine = XXH3_64bits(run->data.rows, bytes), first = mine;
    TRY(mesh_broadcast(&run->mesh, &first_samples, sizeof first_samples));
    struct axis *axes[] = {&run->mesh.tensor,
                           &run->mesh.pipeline}; /* along both: from the first rank of the data index */
    for (int i = 0; i < 2; i++)
        if (axes[i]->size > 1 && MPI_Bcast(&first, 1, MPI_UINT64_T, 0, axes[i]->comm) != MPI_SUCCESS)
            return gdn_fail(GDN_INTERNAL, "MPI_Bcast of the first batch's checksum failed");
    if (samples == first_samples && mine == first) return 0;
    return gdn_fail(
        GDN_INPUT,
        "the training data of this rank differ from those of others: %ld sequences where rank 0 has %ld, or "
        "other tokens in the first batch; every node needs the same files, by absolute paths best",
        samples, first_samples);
}

int run_open_data(struct run *run) {
    TRY(mesh_agree(&run->mesh, open_data(run)));
    return run->mesh.size > 1 ? mesh_agree(&run->mesh, agree_on_data(run)) : 0;
}
