/* The run's data: how a batch is divided, and where samples come from. */
#include "train/run.h"

#include <stdlib.h>

/* Sequences of a step on each rank, and of each micro-batch. */
static int divide_batch(struct run *run) {
    const struct train_config *train = &run->config.train;
    int ranks = run->mesh.data, batch = train->batch_size, micro = train->micro_batch_size;
    if (batch % ranks)
        return gdn_fail(
            GDN_INPUT,
            "train.batch_size %d cannot be divided among %d data ranks (mesh.data, or all ranks that "
            "were started); use a multiple of %d",
            batch, ranks, ranks);
    run->share = batch / ranks;
    run->micro = micro ? micro : run->share;
    if (run->share % run->micro)
        return gdn_fail(
            GDN_INPUT,
            "train.batch_size %d is not a multiple of train.micro_batch_size %d times %d data ranks "
            "(%d)",
            batch, micro, ranks, micro * ranks);
    return 0;
}

/* Opens a part of the training data: of `path` where it is not empty, else of the mixture. */
static int open_part(const struct config *config, const char *path, bool shuffle, double from, double to,
                     struct sampler **out) {
    const struct data_config *data = &config->data;
    struct sampler_options options = {
        .format = (enum tokens_format)data->format,
        .shuffle = shuffle,
        .seed = config->train.seed,
        .length = config->train.sequence_length,
        .from = from,
        .to = to,
    };
    if (path[0]) {
        options.sources = &(struct sampler_source){path, 1};
        options.num_sources = 1;
        return sampler_open(&options, out);
    }
    struct sampler_source *sources = calloc((size_t)data->num_sources, sizeof *sources);
    if (!sources) return gdn_fail(GDN_INTERNAL, "out of memory for %d data sources", data->num_sources);
    for (int i = 0; i < data->num_sources; i++)
        sources[i] = (struct sampler_source){data->sources[i].path, data->sources[i].weight};
    options.sources = sources;
    options.num_sources = data->num_sources;
    int status = sampler_open(&options, out);
    free(sources);
    return status;
}

/* Of the training data, the last validation_fraction is held out, unless there is a file for validation. */
static double held_out(const struct data_config *data) {
    return data->validation[0] ? 0 : data->validation_fraction;
}

int run_open_validation(const struct config *config, struct sampler **out) {
    const struct data_config *data = &config->data;
    double fraction = held_out(data);
    *out = NULL;
    int length = config->train.sequence_length;
    if (data->validation[0])
        return gdn_fail_in(open_part(config, data->validation, false, 0, 1, out),
                           "data.validation with train.sequence_length %d", length);
    if (fraction > 0)
        return gdn_fail_in(open_part(config, data->train, false, 1 - fraction, 1, out),
                           "data.validation_fraction %g with train.sequence_length %d", fraction, length);
    return 0;
}

static int open_data(struct run *run) {
    const struct config *config = &run->config;
    TRY(config_check_for_training(config));
    TRY(divide_batch(run));
    int status = open_part(config, config->data.train, config->data.order == ORDER_SHUFFLE, 0,
                           1 - held_out(&config->data), &run->data);
    TRY(gdn_fail_in(status, "%s with train.sequence_length %d",
                    config->data.train[0] ? "data.train" : "data.sources", config->train.sequence_length));
    TRY(run_open_validation(config, &run->validation));
    run->rows = malloc((size_t)run->share * (size_t)(config->train.sequence_length + 1) * sizeof *run->rows);
    if (!run->rows) return gdn_fail(GDN_INTERNAL, "out of memory for a batch of %ld sequences", run->share);
    return run_read_batch(run);
}

int run_read_batch(struct run *run) {
    int vocab = run->config.model.vocab_size;
    return gdn_fail_in(sampler_read(run->data, run->samples + run->mesh.data_index * run->share, run->share,
                                    vocab, run->rows),
                       "training data for model.vocab_size %d", vocab);
}

int run_open_data(struct run *run) {
    return mesh_agree(&run->mesh, open_data(run));
}
