#include "train/run_eval.h"

#include "kernels/base/status.h"

#include <stdlib.h>

/* Tokens of a group: enough for efficient matrix products, few enough that its logits stay small. */
enum { GROUP_TOKENS = 1024 };

/* Groups of a round: enough that a pipeline is mostly full. */
static int round_groups(const struct mesh *mesh) {
    return mesh->pipeline.size == 1 ? 1 : 4 * mesh->pipeline.size;
}

/* What this rank can do alone. */
static int prepare(const struct config *config, const struct table *table, const struct state *state,
                   const struct ops *ops, struct evaluation *out) {
    struct mesh *mesh = out->mesh;
    struct pipeline *pipeline = &out->pipeline;
    long all = sampler_epoch(out->sampler),
         wanted = config->train.eval_batches * (long)config->train.batch_size;
    out->sequences = wanted > 0 && wanted < all ? wanted : all;
    out->group = out->length < GROUP_TOKENS ? GROUP_TOKENS / out->length : 1;
    if (out->group > out->sequences) out->group = out->sequences;
    long rows = out->group * round_groups(mesh);
    out->rows = malloc((size_t)(rows * (out->length + 1)) * sizeof *out->rows);
    if (!out->rows) return gdn_fail(GDN_INTERNAL, "out of memory for %ld evaluation sequences", rows);
    TRY(gdn_fail_in(sampler_read(out->sampler, 0, out->group, out->vocab, out->rows),
                    "validation data for model.vocab_size %d", out->vocab));
    TRY(pipeline_create(config, mesh->data.size, mesh->data.index, mesh->tensor.index, round_groups(mesh),
                        false, pipeline));
    pipeline_keep(pipeline, mesh->pipeline.index);
    const struct layout *layout = &pipeline->layout[mesh->pipeline.index];
    const struct model_part part = {layout, &mesh->tensor,
                                    pipeline->slots + mesh->pipeline.index * layout->chunks};
    return model_create(&config->model, table, state, ops, &part, out->group, out->length, false,
                        &out->model);
}

int evaluation_create(struct mesh *mesh, const struct config *config, const struct table *table,
                      const struct state *state, const struct ops *ops, struct sampler *sampler,
                      struct evaluation *out) {
    *out = (struct evaluation){
        .mesh = mesh,
        .sampler = sampler,
        .length = config->train.sequence_length,
        .vocab = config->model.vocab_size,
    };
    TRY(mesh_agree(mesh, prepare(config, table, state, ops, out)));
    const struct execution execution = {
        .mesh = mesh,
        .config = &config->model,
        .pipeline = &out->pipeline,
        .ops = ops,
        .model = out->model,
        .batch = out->group,
        .length = out->length,
    };
    return mesh_agree(mesh, executor_create(&execution, &out->executor));
}

void evaluation_free(struct evaluation *evaluation) {
    executor_free(evaluation->executor);
    model_free(evaluation->model);
    pipeline_free(&evaluation->pipeline);
    free(evaluation->rows);
    *evaluation = (struct evaluation){0};
}

/* One round: groups `first` … `end` − 1, which may be fewer than a round's, or none. Collective. */
static int sum_round(struct evaluation *evaluation, long first, long end, int active, double *sum) {
    struct mesh *mesh = evaluation->mesh;
    const struct loss_options options = {.active = active};
    long from = first * evaluation->group, to = end * evaluation->group;
    if (to > evaluation->sequences) to = evaluation->sequences;
    struct step step = {
        .rows = evaluation->rows, .sequences = to > from ? to - from : 0, .options = &options};
    int status = 0;
    if (step.sequences)
        status = sampler_read(evaluation->sampler, from, step.sequences, evaluation->vocab, evaluation->rows);
    TRY(mesh_agree(mesh, status));
    TRY(execute(evaluation->executor, &step));
    *sum += step.sums.ce;
    return 0;
}

int evaluation_loss(struct evaluation *evaluation, int active, double *loss) {
    struct mesh *mesh = evaluation->mesh;
    int ranks = mesh->data.size, each = round_groups(mesh);
    long groups = (evaluation->sequences + evaluation->group - 1) / evaluation->group;
    long from = groups * mesh->data.index / ranks, to = groups * (mesh->data.index + 1) / ranks;
    long rounds = ((groups + ranks - 1) / ranks + each - 1) / each; /* of whichever rank has most */
    double sum = 0;
    for (long r = 0; r < rounds; r++) {
        long first = from + r * each, end = first + each;
        TRY(sum_round(evaluation, first, end < to ? end : to, active, &sum));
    }
    TRY(mesh_sum(mesh, &sum, 1));
    *loss = sum / ((double)evaluation->sequences * (double)evaluation->length);
    return 0;
}
