#include "train/run/data.h"

#include "kernels/base/marks.h"
#include "train/config/batch.h"
#include "train/config/rows.h"
#include "train/evaluation/data_part.h"
#include "train/prune/pruning.h"
#include "train/run/tokenized.h"

#include <stdlib.h>
#include <xxhash.h>

static int open_data(const struct config *config, const struct mesh *mesh,
                     const struct run_position *position, long share, struct run_data *data) {
    int status = data_part_open(config, &config->data.train, config->data.order == ORDER_SHUFFLE, 0,
                                1 - data_held_out(&config->data), &data->sampler);
    TRY(gdn_fail_in(status, "%s with train.sequence_length %d",
                    config->data.train.count ? "data.train" : "data.sources", config->train.sequence_length));
    TRY(validation_open(config, &data->validation));
    TRY(run_tokenizer_verify(&data->tokenizer, data->sampler, &data->validation));
    if (pruning_importance(&config->train.prune)->left_out)
        TRY(validation_few(&data->validation, validation_wanted(&config->train, config->train.prune.batches), &data->few));
    data->rows = malloc((size_t)share * (size_t)(config->train.sequence_length + 1) * sizeof *data->rows);
    if (mesh->axis[AXIS_CONTEXT].size > 1)
        data->pieces = malloc((size_t)config_rows(config, share) * (size_t)(config_row_length(config) + 1) *
                              sizeof *data->pieces);
    if (!data->rows || (mesh->axis[AXIS_CONTEXT].size > 1 && !data->pieces))
        return gdn_fail(GDN_INTERNAL, "out of memory for a batch of %ld sequences", share);
    return run_data_read(data, config, mesh, position);
}

long run_data_share(const struct config *config, const struct mesh *mesh,
                    const struct run_position *position) {
    return batch_at(&config->train, position->step) / mesh->batch.parts;
}

/* Sets what counts of the whole batch where all does; else of this rank's part, which is left to one of those
 * that have the same. */
static void count_part(struct run_data *data, const struct mesh *mesh, long share, long length) {
    const long half = share * mesh->batch.parts / 2, first = mesh->batch.index * share;
    const int64_t all[2] = {half * length, (share * mesh->batch.parts - half) * length};
    struct batch_counts *counted = &data->counted;
    *counted = (struct batch_counts){{0}, {0}};
    for (int h = 0; h < 2 && !data->masked; h++) counted->targets[h] = counted->tokens[h] = all[h];
    if (!data->masked || mesh->rank != axes_batch_first(mesh->sizes.size, mesh->rank)) return;
    for (long s = 0; s < share; s++)
        for (long t = 0; t < length; t++) {
            const int32_t *row = data->rows + s * (length + 1) + t;
            counted->targets[first + s >= half] += !(row[1] & MARK_UNCOUNTED);
            counted->tokens[first + s >= half] += !(row[0] & MARK_PADDING);
        }
}

int run_data_read(struct run_data *data, const struct config *config, const struct mesh *mesh,
                  const struct run_position *position) {
    const int vocab = config->model.vocab_size;
    const long share = run_data_share(config, mesh, position);
    TRY(gdn_fail_in(
        sampler_read(data->sampler, position->samples + mesh->batch.index * share, share, vocab, data->rows),
        "training data for model.vocab_size %d", vocab));
    count_part(data, mesh, share, config->train.sequence_length);
    const struct axis *context = &mesh->axis[AXIS_CONTEXT];
    if (data->pieces)
        pieces_cut(context->size, context->index, share, config->train.sequence_length, data->rows,
                   data->pieces);
    return 0;
}

int run_data_count(struct run_data *data, struct mesh *mesh) {
    return data->masked ? mesh_reduce(mesh, &data->counted, 4, MPI_INT64_T, MPI_SUM) : 0;
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
                  long share, const struct run_data_origin *origin, FILE *log, struct run_data *out) {
    *out = (struct run_data){.changed = false};
    TRY(mesh_agree(mesh, config_validate_for_training(config)));
    TRY(run_tokenizer_open(config, mesh, &origin->tokenizer, origin->owner, &out->tokenizer));
    struct tokenized tokenized;
    int status = tokenized_open(config, &out->tokenizer, mesh, TOKENIZED_ALL, log, &tokenized);
    if (!status) status = mesh_agree(mesh, open_data(&tokenized.config, mesh, position, share, out));
    tokenized_free(&tokenized);
    TRY(status);
    out->validation.bytes = out->tokenizer.carried.name ? &out->tokenizer.bytes : NULL;
    if (mesh->size > 1) TRY(agree(out, config, mesh, position));
    const int masked = mesh_any(mesh, sampler_masked(out->sampler));
    out->masked = masked > 0;
    return masked < 0 ? GDN_INTERNAL : 0;
}

void run_data_free(struct run_data *data) {
    sampler_close(data->sampler);
    validation_close(&data->few);
    validation_close(&data->validation);
    run_tokenizer_free(&data->tokenizer);
    free(data->rows);
    free(data->pieces);
    free(data->text);
}
