#include "train/run_eval.h"

#include "kernels/base/status.h"

#include <stdlib.h>

/* Tokens of a group: enough for efficient matrix products, few enough that its logits stay small. */
enum { GROUP_TOKENS = 1024 };

int evaluation_create(const struct config *config, const struct table *table, const struct state *state,
                      const struct ops *ops, struct sampler *sampler, struct evaluation *out) {
    long length = config->train.sequence_length, all = sampler_epoch(sampler);
    long wanted = config->train.eval_batches * (long)config->train.batch_size;
    *out = (struct evaluation){
        .sampler = sampler,
        .sequences = wanted > 0 && wanted < all ? wanted : all,
        .group = length < GROUP_TOKENS ? GROUP_TOKENS / length : 1,
        .length = length,
        .vocab = config->model.vocab_size,
    };
    if (out->group > out->sequences) out->group = out->sequences;
    out->rows = malloc((size_t)(out->group * (length + 1)) * sizeof *out->rows);
    if (!out->rows) return gdn_fail(GDN_INTERNAL, "out of memory for %ld evaluation sequences", out->group);
    TRY(gdn_fail_in(sampler_read(sampler, 0, out->group, out->vocab, out->rows),
                    "validation data for model.vocab_size %d", out->vocab));
    return model_create(&config->model, table, state, ops, out->group, length, false, &out->model);
}

void evaluation_free(struct evaluation *evaluation) {
    model_free(evaluation->model);
    free(evaluation->rows);
    *evaluation = (struct evaluation){0};
}

/* Adds up this rank's groups `from` … `to` − 1, in order. */
static int sum_groups(struct evaluation *evaluation, long from, long to, int active, double *sum) {
    struct loss_options options = {.active = active};
    for (long g = from; g < to; g++) {
        long first = g * evaluation->group, count = evaluation->sequences - first;
        if (count > evaluation->group) count = evaluation->group;
        TRY(sampler_read(evaluation->sampler, first, count, evaluation->vocab, evaluation->rows));
        struct loss_sums sums = {0};
        model_loss(evaluation->model, evaluation->rows, count, evaluation->length, &options, &sums);
        *sum += sums.ce;
    }
    return 0;
}

int evaluation_loss(struct evaluation *evaluation, const struct mesh *mesh, int active, double *loss) {
    long groups = (evaluation->sequences + evaluation->group - 1) / evaluation->group;
    long from = groups * mesh->data_index / mesh->data, to = groups * (mesh->data_index + 1) / mesh->data;
    double sum = 0;
    TRY(mesh_agree(mesh, sum_groups(evaluation, from, to, active, &sum)));
    TRY(mesh_sum(mesh, &sum, 1));
    *loss = sum / ((double)evaluation->sequences * (double)evaluation->length);
    return 0;
}
