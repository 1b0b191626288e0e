#include "train/run/data.h"

#include "train/config/batch.h"
#include "train/evaluation/data_part.h"

#include <stdlib.h>
#include <xxhash.h>

static int open_data(const struct config *config, const struct mesh *mesh,
                     const struct run_position *position, long share, struct run_data *data) {
    TRY(config_validate_for_training(config));
    int status = data_part_open(config, &config->data.train, config->data.order == ORDER_SHUFFLE, 0,
                                1 - data_held_out(&config->data), &data->sampler);
    TRY(gdn_fail_in(status, "%s with train.sequence_length %d",
                    config->data.train.count ? "data.train" : "data.sources", config->train.sequence_length));
    TRY(validation_open(config, &data->validation));
    data->rows = malloc((size_t)share * (size_t)(config->train.sequence_length + 1) * sizeof *data->rows);
    if (!data->rows) return gdn_fail(GDN_INTERNAL, "out of memory for a batch of %ld sequences", share);
    return run_data_read(data, config, mesh, position);
}

long run_data_share(const struct config *config, const struct mesh *mesh,
                    const struct run_position *position) {
    return batch_at(&config->train, position->step) / mesh->batch.parts;
}

int run_data_read(struct run_data *data, const struct config *config, const struct mesh *mesh,
                  const struct run_position *position) {
    const int vocab = config->model.vocab_size;
    const long share = run_data_share(config, mesh, position);
    return gdn_fail_in(
        sampler_read(data->sampler, position->samples + mesh->batch.index * share, share, vocab, data->rows),
        "training data for model.vocab_size %d", vocab);
}

/* What a rank has found. */
struct sight {
    int64_t samples;
    uint64_t first_batch; /* checksum */
};

/* Every node may have files of its own: ranks that read the same samples must have read the same tokens, and
 * all must find as many samples. `seen` [ranks]. Collective. */
static int compare_ranks(const struct mesh *mesh, const struct sight *mine, struct sight *seen) {
    TRY(mesh_gather(mesh, mine, sizeof *mine, seen));
    const struct sight *same_batch = &seen[axes_batch_first(mesh->sizes.size, mesh->rank)];
    if (mine->samples == seen[0].samples && mine->first_batch == same_batch->first_batch) return 0;
    return gdn_fail(
        GDN_INPUT,
        "the training data of this rank differ from those of others: %ld sequences where rank 0 has %ld, or "
        "other tokens in the first batch; every node needs the same files, by absolute paths best",
        (long)mine->samples, (long)seen[0].samples);
}

static int agree(const struct run_data *data, const struct config *config, const struct mesh *mesh,
                 const struct run_position *position) {
    const size_t tokens =
        (size_t)run_data_share(config, mesh, position) * (size_t)(config->train.sequence_length + 1);
    const struct sight mine = {sampler_epoch(data->sampler),
                               XXH3_64bits(data->rows, tokens * sizeof *data->rows)};
    struct sight *seen = calloc((size_t)mesh->size, sizeof *seen);
    int status = mesh_agree(mesh, seen ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for what ranks read"));
    if (!status) status = mesh_agree(mesh, compare_ranks(mesh, &mine, seen));
    free(seen);
    return status;
}

int run_data_open(const struct config *config, const struct mesh *mesh, const struct run_position *position,
                  long share, struct run_data *out) {
    *out = (struct run_data){.changed = false};
    TRY(mesh_agree(mesh, open_data(config, mesh, position, share, out)));
    return mesh->size > 1 ? agree(out, config, mesh, position) : 0;
}

void run_data_free(struct run_data *data) {
    sampler_close(data->sampler);
    validation_close(&data->validation);
    free(data->rows);
    free(data->text);
}
