#include "train/run_eval.h"

#include "kernels/base/position.h"
#include "kernels/base/status.h"

#include <stdlib.h>

/* Tokens of a group: enough for efficient matrix products, few enough that its logits stay small. */
enum { GROUP_TOKENS = 1024 };

/* Groups of a round: enough that a pipeline is mostly full. */
static int round_groups(int pipeline_ranks) {
    return pipeline_ranks == 1 ? 1 : 4 * pipeline_ranks;
}

static size_t rows_bytes(const struct evaluation *e) {
    long rows = e->group * e->pipeline.micro_batches;
    return (size_t)(rows * (e->length + 1)) * sizeof *e->rows;
}

int evaluation_describe(const struct config *config, int data, int data_index, int tensor_index, long all,
                        struct evaluation *out) {
    long wanted = config->train.eval_batches * (long)config->train.batch_size;
    *out = (struct evaluation){.length = config->train.sequence_length, .vocab = config->model.vocab_size};
    out->every = wanted <= 0 || wanted >= all;
    out->sequences = out->every ? all : wanted;
    out->group = out->length < GROUP_TOKENS ? GROUP_TOKENS / out->length : 1;
    if (out->group > out->sequences) out->group = out->sequences;
    return pipeline_create(config, data, data_index, tensor_index, round_groups(config->mesh.pipeline), false,
                           &out->pipeline);
}

static struct model_part part_of(const struct evaluation *e, const struct layout *layout,
                                 struct axis *tensor) {
    return (struct model_part){
        .layout = layout,
        .tensor = tensor,
        .slots = e->pipeline.slots + layout->pipeline_index * layout->chunks,
    };
}

/* Reads `count` sequences from number `first` on into `rows`. The first few are the training's mixture; all
 * of them are not, which would repeat a source of large weight until one of small weight has been read. */
static int read_rows(struct evaluation *e, long first, long count) {
    return (e->every ? sampler_read_sequences : sampler_read)(e->sampler, first, count, e->vocab, e->rows);
}

/* What this rank can do alone. */
static int prepare(struct mesh *mesh, const struct config *config, const struct table *table,
                   const struct state *state, const struct ops *ops, struct sampler *sampler,
                   struct evaluation *out) {
    TRY(evaluation_describe(config, mesh->data.size, mesh->data.index, mesh->tensor.index,
                            sampler_sequences(sampler), out));
    out->mesh = mesh;
    out->sampler = sampler;
    pipeline_keep(&out->pipeline, mesh->pipeline.index);
    out->rows = malloc(rows_bytes(out));
    if (!out->rows)
        return gdn_fail(GDN_INTERNAL, "out of memory for %zu bytes of evaluation sequences", rows_bytes(out));
    TRY(gdn_fail_in(read_rows(out, 0, out->group), "validation data for model.vocab_size %d", out->vocab));
    struct model_part part = part_of(out, &out->pipeline.layout[mesh->pipeline.index], &mesh->tensor);
    return model_create(&config->model, table, state, ops, &part, out->group, out->length, false,
                        &out->model);
}

static struct execution execution_of(const struct evaluation *e, const struct model_config *config) {
    return (struct execution){
        .mesh = e->mesh,
        .config = config,
        .pipeline = &e->pipeline,
        .model = e->model,
        .batch = e->group,
        .length = e->length,
    };
}

int evaluation_create(struct mesh *mesh, const struct config *config, const struct table *table,
                      const struct state *state, const struct ops *ops, struct sampler *sampler,
                      struct evaluation *out) {
    *out = (struct evaluation){0};
    TRY(mesh_agree(mesh, prepare(mesh, config, table, state, ops, sampler, out)));
    struct execution execution = execution_of(out, &config->model);
    execution.ops = ops;
    return mesh_agree(mesh, executor_create(&execution, &out->executor));
}

static void add_memory(const struct evaluation *e, const struct model_memory *model, long executor,
                       struct memory *sum) {
    sum->bytes[MEMORY_COMMUNICATION] += executor;
    sum->bytes[MEMORY_WORKSPACE] +=
        model->activations + model->sources + model->workspace + (int64_t)rows_bytes(e);
}

int evaluation_plan(const struct evaluation *evaluation, const struct config *config,
                    const struct layout *layout, const struct table *table, struct axis *tensor,
                    struct memory *sum) {
    struct model_part part = part_of(evaluation, layout, tensor);
    struct model_memory memory;
    struct model *model;
    TRY(model_create_planned(&config->model, table, &part, evaluation->group, evaluation->length, false,
                             &model));
    model_memory(model, &memory);
    model_free(model);
    struct execution execution = execution_of(evaluation, &config->model);
    add_memory(evaluation, &memory, executor_planned(&execution, layout->pipeline_index), sum);
    return 0;
}

void evaluation_memory(const struct evaluation *evaluation, struct memory *sum) {
    struct model_memory model;
    model_memory(evaluation->model, &model);
    add_memory(evaluation, &model, executor_memory(evaluation->executor), sum);
}

void evaluation_free(struct evaluation *evaluation) {
    executor_free(evaluation->executor);
    model_free(evaluation->model);
    pipeline_free(&evaluation->pipeline);
    free(evaluation->rows);
    *evaluation = (struct evaluation){0};
}

/* One round: groups `first` … `end` − 1, which may be fewer than a round's, or none. `given_up`: this rank
 * was told to. Collective. */
static int sum_round(struct evaluation *evaluation, long first, long end, int active, bool given_up,
                     double *sum) {
    struct mesh *mesh = evaluation->mesh;
    const struct loss_options options = {.active = active};
    long from = first * evaluation->group, to = end * evaluation->group;
    if (to > evaluation->sequences) to = evaluation->sequences;
    struct step step = {
        .rows = evaluation->rows, .sequences = to > from ? to - from : 0, .options = &options};
    int status = given_up ? gdn_fail(GDN_STOPPED, "asked to stop in an evaluation") : 0;
    position_renew(); /* a round counts as a step, however many there are */
    if (step.sequences && !status) status = read_rows(evaluation, from, step.sequences);
    TRY(mesh_agree(mesh, status));
    TRY(execute(evaluation->executor, &step));
    *sum += step.sums.ce;
    return 0;
}

int evaluation_loss(struct evaluation *evaluation, int active, evaluation_ask *ask, void *context,
                    double *loss) {
    struct mesh *mesh = evaluation->mesh;
    int ranks = mesh->data.size, each = evaluation->pipeline.micro_batches;
    long groups = (evaluation->sequences + evaluation->group - 1) / evaluation->group;
    long from = groups * mesh->data.index / ranks, to = groups * (mesh->data.index + 1) / ranks;
    long rounds = ((groups + ranks - 1) / ranks + each - 1) / each; /* of whichever rank has most */
    double sum = 0;
    for (long r = 0; r < rounds; r++) {
        long first = from + r * each, end = first + each;
        TRY(sum_round(evaluation, first, end < to ? end : to, active, ask && ask(context), &sum));
    }
    TRY(mesh_sum(mesh, &sum, 1));
    *loss = sum / ((double)evaluation->sequences * (double)evaluation->length);
    return 0;
}
