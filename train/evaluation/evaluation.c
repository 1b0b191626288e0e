#include "train/evaluation/evaluation.h"

#include "dist/layout/pieces.h"
#include "dist/mpi/activity.h"
#include "kernels/base/marks.h"
#include "kernels/base/status.h"

#include <math.h>
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

/* Rows that the model has of so many sequences, their tokens, and the bytes of all pieces (pieces.h). */
static long model_rows(const struct evaluation *e, long sequences) {
    return sequences * pieces_each(e->context);
}

static long model_length(const struct evaluation *e) {
    return pieces_length(e->context, e->length);
}

static size_t pieces_bytes(const struct evaluation *e) {
    long rows = model_rows(e, e->group * e->pipeline.micro_batches);
    return e->context > 1 ? (size_t)(rows * (model_length(e) + 1)) * sizeof *e->pieces : 0;
}

int evaluation_describe(const struct config *config, const struct partition_place *place, long max,
                        struct evaluation *out) {
    *out = (struct evaluation){.length = config->train.sequence_length,
                               .context = config->mesh.size[AXIS_CONTEXT],
                               .context_exchange = config->mesh.context_exchange,
                               .vocab = config->model.vocab_size,
                               .documents = config->data.documents == DOCUMENTS_MASK};
    out->group = out->length < GROUP_TOKENS ? GROUP_TOKENS / out->length : 1;
    if (out->group > max) out->group = max;
    return pipeline_create(config, place, round_groups(config->mesh.size[AXIS_PIPELINE]), false,
                           &out->pipeline);
}

static struct model_part part_of(const struct evaluation *e, const struct layout *layout,
                                 struct axis *tensor, struct axis *context) {
    return (struct model_part){
        .layout = layout,
        .tensor = tensor,
        .context = context,
        .context_exchange = e->context_exchange,
        .activation_sets = e->pipeline.activation_sets + layout->index[AXIS_PIPELINE] * layout->chunks,
        .documents = e->documents,
    };
}

/* Reads `count` sequences of the part from number `first` on into `rows`. */
static int read_rows(struct evaluation *e, const struct validation_part *part, long first, long count) {
    return sampler_read_sequences(part->sampler, part->first + first, count, e->vocab, e->rows);
}

static int read_first_groups(struct evaluation *e) {
    for (int i = 0; i < e->validation->parts; i++) {
        const struct validation_part *part = &e->validation->part[i];
        long count = part->sequences < e->group ? part->sequences : e->group;
        TRY(gdn_fail_in(read_rows(e, part, 0, count), "validation data for model.vocab_size %d", e->vocab));
    }
    return 0;
}

static int reserve(struct evaluation *e) {
    e->rows = malloc(rows_bytes(e));
    e->sums = calloc((size_t)e->validation->parts, EVALUATION_SUMS * sizeof *e->sums);
    e->result = calloc((size_t)e->validation->sets, sizeof *e->result);
    if (e->context > 1) e->pieces = malloc(pieces_bytes(e));
    if (!e->rows || !e->sums || !e->result || (e->context > 1 && !e->pieces))
        return gdn_fail(GDN_INTERNAL, "out of memory for %zu bytes of evaluation sequences",
                        rows_bytes(e) + pieces_bytes(e));
    for (int i = 0; i < e->validation->sets; i++) e->result[i] = (struct evaluation_result){NAN, NAN, 0};
    return 0;
}

/* Every node may have files of its own: all ranks must have found as many sequences, of which each then reads
 * its part. Collective; the status is this rank's. */
static int same_data(struct evaluation *e) {
    const struct validation *v = e->validation;
    for (int i = 0; i < v->parts; i++) e->sums[i] = (double)v->part[i].sequences;
    TRY(mesh_broadcast(e->mesh, e->sums, (size_t)v->parts * sizeof *e->sums));
    for (int i = 0; i < v->sets; i++)
        for (int p = v->set[i].first; p < v->set[i].end; p++)
            if (e->sums[p] != (double)v->part[p].sequences)
                return gdn_fail(GDN_INPUT,
                                "the validation data '%s' of this rank have %ld sequences where rank 0 has "
                                "%.0f; every node needs the same files, by absolute paths best",
                                v->set[i].name, v->part[p].sequences, e->sums[p]);
    return 0;
}

/* What this rank can do alone. */
static int prepare(struct mesh *mesh, const struct config *config, const struct table *table,
                   const struct state *state, const struct ops *ops, const struct validation *validation,
                   struct evaluation *out) {
    const struct partition_place place = partition_place_of(mesh->sizes.size, mesh->rank);
    TRY(evaluation_describe(config, &place, validation_max(validation), out));
    out->mesh = mesh;
    out->context_index = mesh->axis[AXIS_CONTEXT].index;
    out->validation = validation;
    pipeline_keep(&out->pipeline, place.pipeline_index);
    TRY(reserve(out));
    TRY(read_first_groups(out));
    struct model_part part =
        part_of(out, &out->pipeline.layout[place.pipeline_index], &mesh->axis[AXIS_TENSOR],
                &mesh->axis[AXIS_CONTEXT]);
    return model_create(&config->model, table, state, ops, &part, model_rows(out, out->group),
                        model_length(out), false, &out->model);
}

static struct execution execution_of(const struct evaluation *e, const struct model_config *config) {
    return (struct execution){
        .mesh = e->mesh,
        .config = config,
        .pipeline = &e->pipeline,
        .model = e->model,
        .batch = model_rows(e, e->group),
        .length = model_length(e),
    };
}

int evaluation_create(struct mesh *mesh, const struct config *config, const struct table *table,
                      const struct state *state, const struct ops *ops, const struct validation *validation,
                      struct evaluation *out) {
    *out = (struct evaluation){0};
    TRY(mesh_agree(mesh, prepare(mesh, config, table, state, ops, validation, out)));
    TRY(mesh_agree(mesh, same_data(out)));
    struct execution execution = execution_of(out, &config->model);
    execution.ops = ops;
    return mesh_agree(mesh, executor_create(&execution, &out->executor));
}

static void add_memory(const struct evaluation *e, const struct model_memory *model, long executor,
                       struct memory *sum) {
    sum->bytes[MEMORY_COMMUNICATION] += executor;
    sum->bytes[MEMORY_WORKSPACE] +=
        model->activations + model->sources + model->workspace + (int64_t)(rows_bytes(e) + pieces_bytes(e));
}

int evaluation_plan(const struct evaluation *evaluation, const struct config *config,
                    const struct layout *layout, const struct table *table, struct axis *tensor,
                    struct axis *context, struct memory *sum) {
    struct model_part part = part_of(evaluation, layout, tensor, context);
    struct model_memory memory;
    struct model *model;
    TRY(model_create_planned(&config->model, table, &part, model_rows(evaluation, evaluation->group),
                             model_length(evaluation), false, &model));
    model_memory(model, &memory);
    model_free(model);
    struct execution execution = execution_of(evaluation, &config->model);
    add_memory(evaluation, &memory, executor_planned(&execution, layout->index[AXIS_PIPELINE]), sum);
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
    free(evaluation->pieces);
    free(evaluation->sums);
    free(evaluation->result);
    *evaluation = (struct evaluation){0};
}

/* How many of the sequences' targets count, and how many bytes of text these are: 0 where that is not known. */
static void count_targets(const struct evaluation *e, long sequences, double sums[EVALUATION_SUMS]) {
    const struct token_bytes *table = e->validation->bytes;
    long bytes = 0, counted = 0;
    for (long s = 0; s < sequences; s++) {
        const int32_t *row = e->rows + s * (e->length + 1);
        for (long t = 1; t <= e->length; t++) {
            if (row[t] & MARK_UNCOUNTED) continue;
            counted++;
            if (table) bytes += token_bytes_length(table, row[t - 1] & MARK_TOKEN, row[t] & MARK_TOKEN);
        }
    }
    sums[EVALUATION_BYTES] += (double)bytes;
    sums[EVALUATION_COUNTED] += (double)counted;
}

/* How an evaluation is to be made. */
struct wish {
    const struct edge_set *active;
    evaluation_ask *ask;
    void *context;
    struct connection_sums *each; /* [edges] this rank's part is added to these; NULL: not measured */
    const struct head_watch *heads; /* sees the logits of exits and last layer; NULL: nobody */
    double tokens;                  /* of this rank's sequences */
};

/* What the connections did in the round that was just made. */
static void add_connections(const struct evaluation *evaluation, const struct wish *wish) {
    const struct connection_sums *found = executor_connections(evaluation->executor);
    for (int e = 0; e < evaluation->pipeline.edges.count; e++) {
        wish->each[e].gate += found[e].gate;
        wish->each[e].contribution += found[e].contribution;
    }
}

/* One round of a part: its groups `first` … `end` − 1, which may be fewer than a round's, or none. Adds to
 * `sums` this rank's part. Collective. */
static int sum_round(struct evaluation *evaluation, const struct validation_part *part, long first, long end,
                     struct wish *wish, double sums[EVALUATION_SUMS]) {
    struct mesh *mesh = evaluation->mesh;
    struct loss_options options = {.active = wish->active, .measure = wish->each, .each = wish->each};
    for (int e = 0; wish->heads && e < MAX_EXITS; e++) options.exit_weight[e] = 1;
    const bool given_up = wish->ask && wish->ask(wish->context);
    long from = first * evaluation->group, to = end * evaluation->group;
    if (to > part->sequences) to = part->sequences;
    const long sequences = to > from ? to - from : 0;
    struct step step = {.rows = evaluation->pieces ? evaluation->pieces : evaluation->rows,
                        .whole = evaluation->pieces ? evaluation->rows : NULL,
                        .sequences = model_rows(evaluation, sequences),
                        .options = &options,
                        .heads = wish->heads};
    int status = given_up ? gdn_fail(GDN_STOPPED, "asked to stop in an evaluation") : 0;
    activity_renew(); /* a round counts as a step, however many there are */
    if (sequences && !status) status = read_rows(evaluation, part, from, sequences);
    if (evaluation->pieces && !status)
        pieces_cut(evaluation->context, evaluation->context_index, sequences, evaluation->length,
                   evaluation->rows, evaluation->pieces);
    TRY(mesh_agree(mesh, status));
    TRY(execute(evaluation->executor, &step));
    sums[EVALUATION_NATS] += step.sums.ce;
    if (wish->each) add_connections(evaluation, wish);
    if (mesh->rank != axes_batch_first(mesh->sizes.size, mesh->rank)) return 0; /* others read the same */
    wish->tokens += (double)(sequences * evaluation->length);
    count_targets(evaluation, sequences, sums);
    return 0;
}

/* Collective. */
static int sum_part(struct evaluation *evaluation, int index, struct wish *wish) {
    const struct validation_part *part = &evaluation->validation->part[index];
    double *sums = evaluation->sums + EVALUATION_SUMS * index;
    int ranks = evaluation->mesh->batch.parts, rank = evaluation->mesh->batch.index;
    long groups = (part->sequences + evaluation->group - 1) / evaluation->group;
    long from = groups * rank / ranks, to = groups * (rank + 1) / ranks;
    long each = evaluation->pipeline.micro_batches;
    long rounds = ((groups + ranks - 1) / ranks + each - 1) / each; /* of whichever rank has most */
    for (int i = 0; i < EVALUATION_SUMS; i++) sums[i] = 0;
    for (long r = 0; r < rounds; r++) {
        long first = from + r * each, end = first + each;
        TRY(sum_round(evaluation, part, first, end < to ? end : to, wish, sums));
    }
    return 0;
}

static struct evaluation_result result_of(const struct evaluation *e, int set) {
    const struct validation_set *s = &e->validation->set[set];
    double sums[EVALUATION_SUMS] = {0};
    for (int i = EVALUATION_SUMS * s->first; i < EVALUATION_SUMS * s->end; i++)
        sums[i % EVALUATION_SUMS] += e->sums[i];
    const double counted = sums[EVALUATION_COUNTED], bytes = sums[EVALUATION_BYTES];
    double loss = counted > 0 ? sums[EVALUATION_NATS] / counted : NAN;
    return (struct evaluation_result){
        .loss = loss,
        .bits_per_byte = bytes > 0 ? loss / M_LN2 * (counted / bytes) : NAN,
        .counted = counted,
    };
}

double evaluation_perplexity(const struct evaluation_result *result) {
    return exp(result->loss);
}

int evaluation_tells(double loss) {
    if (isfinite(loss)) return GDN_OK;
    return gdn_fail(GDN_INPUT, "the model's loss is %g: nothing can be told by it", loss);
}

static int evaluate(struct evaluation *evaluation, struct wish *wish, double *loss) {
    const struct validation *validation = evaluation->validation;
    int status = 0;
    model_hold(evaluation->model);
    for (int i = 0; i < validation->parts && !status; i++) status = sum_part(evaluation, i, wish);
    model_release(evaluation->model);
    TRY(status);
    TRY(mesh_sum(evaluation->mesh, evaluation->sums, EVALUATION_SUMS * validation->parts));
    for (int i = 0; i < validation->sets; i++) evaluation->result[i] = result_of(evaluation, i);
    *loss = evaluation->result[0].loss;
    if (evaluation->result[0].counted > 0) return 0;
    return gdn_fail(GDN_INPUT, "no target of the validation data '%s' counts in the loss; some are expected",
                    validation->set[0].name);
}

int evaluation_loss(struct evaluation *evaluation, const struct edge_set *active, evaluation_ask *ask,
                    void *context, double *loss) {
    struct wish wish = {.active = active, .ask = ask, .context = context};
    return evaluate(evaluation, &wish, loss);
}

int evaluation_loss_on(struct evaluation *evaluation, const struct validation *data, evaluation_ask *ask, void *context,
                       double *loss) {
    const struct edge_set *active = pipeline_active(&evaluation->pipeline, evaluation->pipeline.distances);
    const struct validation *own = evaluation->validation;
    const struct evaluation_result first = evaluation->result[0];
    evaluation->validation = data;
    int status = evaluation_loss(evaluation, active, ask, context, loss);
    evaluation->validation = own;
    evaluation->result[0] = first;
    return status;
}

int evaluation_choose(struct evaluation *evaluation, const bool *has) {
    const int rank = evaluation->mesh->axis[AXIS_PIPELINE].index;
    TRY(mesh_agree(evaluation->mesh, pipeline_choose(&evaluation->pipeline, has, rank)));
    return mesh_agree(evaluation->mesh, executor_renew(evaluation->executor));
}

int evaluation_watch(struct evaluation *evaluation, const struct edge_set *active,
                     const struct head_watch *heads, double *loss) {
    struct wish wish = {.active = active, .heads = heads};
    return evaluate(evaluation, &wish, loss);
}

int evaluation_measure(struct evaluation *evaluation, const struct edge_set *active, struct connection_sums *sums,
                       double *tokens, double *loss) {
    struct wish wish = {.active = active, .each = sums};
    int edges = evaluation->pipeline.edges.count;
    for (int e = 0; e < edges; e++) sums[e] = (struct connection_sums){0};
    TRY(evaluate(evaluation, &wish, loss));
    TRY(mesh_sum(evaluation->mesh, (double *)sums, (int)(edges * sizeof *sums / sizeof(double))));
    TRY(mesh_sum(evaluation->mesh, &wish.tokens, 1));
    *tokens = wish.tokens;
    return 0;
}
