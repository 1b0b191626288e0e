/* gdn eval: the loss of a checkpoint on a data set. */
#include "train/commands.h"

#include "train/loop.h"
#include "train/options.h"
#include "train/run_ranks.h"
#include "train/saved_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DATA = 256, KEY_FORMAT };

static const struct argp_option own[] = {
    {"data", KEY_DATA, "FILE", 0, "Measure on this file or glob instead of the run's validation data", 0},
    {"format", KEY_FORMAT, "FORMAT", 0,
     "Format of --data: text, hdf5, llmc, megatron or nanogpt (default: the run's data.format)", 0},
    {0},
};

struct arguments {
    const char *data, *format; /* NULL: not given */
};

static int take(int key, const char *value, void *input) {
    struct arguments *given = input;
    if (key == KEY_DATA) given->data = value;
    if (key == KEY_FORMAT) given->format = value;
    return 0;
}

static const struct command_line line = {
    .arguments = "CHECKPOINT",
    .doc =
        "Measure the loss of a checkpoint. CHECKPOINT is a checkpoint.h5, its step_N directory, or a run "
        "directory, "
        "which stands for the newest checkpoint in it."
        "\v"
        "Examples:\n"
        "  gdn eval runs/small\n"
        "  gdn eval runs/small/checkpoints/best --data book.txt --format text\n"
        "  mpirun -n 4 gdn eval runs/small --set train.eval_batches=100\n"
        "\n"
        "Prints the mean cross entropy per token in nats, the same in bits, and the perplexity. Without "
        "--data the "
        "run's own validation data are used. Sequences have the run's train.sequence_length; as in training, "
        "the "
        "first train.eval_batches batches are read, and with 0 every whole sequence "
        "of every source once, whatever its weight. The value does not "
        "depend on the number of ranks: these share the sequences, and each holds the whole model, whatever "
        "mesh it was trained on (the run's mesh.* settings do not matter here).",
    .common = OPTION_SET,
    .own = own,
    .take = take,
    .least = 1,
    .most = 1,
};

/* What an evaluation works on. */
struct subject {
    struct mesh mesh;
    struct saved_model saved;
    struct sampler *sampler;
    struct evaluation evaluation;
};

/* Loads the model with --set and --format over its configuration. Collective. */
static int load(struct subject *subject, const struct options *options, const struct arguments *given) {
    char format[64];
    int count = options->num_set;
    for (int i = 0; i < count; i++)
        if (!strncmp(options->set[i], "mesh.", 5))
            return mesh_agree(&subject->mesh,
                              gdn_fail(GDN_INPUT,
                                       "--set %s: evaluation is data parallel on all ranks it is "
                                       "started with; leave mesh.* out",
                                       options->set[i]));
    char **set = calloc((size_t)count + 1, sizeof *set);
    if (!set) return gdn_fail(GDN_INTERNAL, "out of memory for the options");
    for (int i = 0; i < count; i++) set[i] = options->set[i];
    if (given->format) {
        snprintf(format, sizeof format, "data.format=%s", given->format);
        set[count++] = format;
    }
    int status = saved_model_load(&subject->mesh, options->argument[0], set, count, &subject->saved);
    free(set);
    return status;
}

static int prepare(struct subject *subject, const struct arguments *given) {
    struct saved_model *saved = &subject->saved;
    struct config *config = &saved->config;
    if (given->data) {
        free(config->data.validation);
        config->data.validation = strdup(given->data);
        if (!config->data.validation) return gdn_fail(GDN_INTERNAL, "out of memory for the options");
    }
    TRY(run_open_validation(config, &subject->sampler));
    if (!subject->sampler)
        return gdn_fail(GDN_INPUT, "%s: its run has no validation data; name a file with --data FILE",
                        saved->path);
    /* Each rank has loaded the whole model: data parallel, however the run was laid out. */
    config->mesh.data = 0;
    config->mesh.tensor = config->mesh.pipeline = config->mesh.interleave = 1;
    config->mesh.sequence_parallel = false;
    return 0;
}

static void print_result(const struct subject *subject, double loss, FILE *out) {
    const struct evaluation *evaluation = &subject->evaluation;
    const char *unit = subject->saved.config.data.format == FORMAT_TEXT ? "byte" : "token";
    fprintf(out, "checkpoint   %s, after %ld steps\n", subject->saved.path, subject->saved.step);
    fprintf(out, "data         %ld sequences of %ld tokens\n", evaluation->sequences, evaluation->length);
    fprintf(out, "loss         %.9g nats a token\n", loss);
    fprintf(out, "             %.6g bits a %s\n", loss / log(2), unit);
    fprintf(out, "perplexity   %.6g\n", exp(loss));
}

static int evaluate(struct subject *subject, const struct options *options, const struct arguments *given) {
    struct mesh *mesh = &subject->mesh;
    double loss = NAN;
    TRY(ranks_share_cores(mesh, mesh->rank == 0 ? stderr : NULL));
    TRY(load(subject, options, given));
    TRY(mesh_agree(mesh, prepare(subject, given)));
    struct saved_model *saved = &subject->saved;
    const struct ops *ops;
    TRY(saved_model_place(saved, mesh, mesh->rank == 0 ? stderr : NULL, &ops));
    TRY(evaluation_create(mesh, &saved->config, &saved->table, &saved->state, ops, subject->sampler,
                          &subject->evaluation));
    TRY(evaluation_loss(&subject->evaluation, loop_active(&saved->config, saved->step), NULL, NULL, &loss));
    if (mesh->rank == 0) print_result(subject, loss, stdout);
    return 0;
}

int cmd_eval(int argc, char **argv) {
    struct options options;
    struct arguments given = {0};
    int status = options_parse(&line, argc, argv, &options, &given);
    if (!status && !options.done) {
        struct subject subject = {0};
        status = ranks_begin(&subject.mesh);
        if (!status) status = evaluate(&subject, &options, &given);
        if (executor_failed(subject.evaluation.executor)) ranks_abort(&subject.mesh, status);
        evaluation_free(&subject.evaluation);
        sampler_close(subject.sampler);
        saved_model_free(&subject.saved);
        status = ranks_end(&subject.mesh, status);
    }
    options_free(&options);
    return status;
}
