/* gdn eval: the loss of a checkpoint on a data set. */
#include "train/command/commands.h"

#include "data/format.h"
#include "train/command/json_line.h"
#include "train/loop/loop.h"
#include "train/command/options.h"
#include "train/run/ranks.h"
#include "train/run/tokenized.h"
#include "train/command/saved_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_DATA = 256, KEY_FORMAT, KEY_VALIDATION, KEY_JSON };

static char format_help[2 * FORMAT_LIST]; /* cmd_eval fills it */

static const struct argp_option own[] = {
    {"data", KEY_DATA, "FILE", 0, "Measure on this file or glob instead of the run's validation data", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, format_help, 0},
    {"validation", KEY_VALIDATION, "NAME", 0,
     "Measure on this one of the run's validation sets (default: on all)", 0},
    {"json", KEY_JSON, NULL, 0, "Print one object as JSON, on one line", 0},
    {0},
};

struct arguments {
    const char *data, *format, *validation; /* NULL: not given */
    bool json;
};

static int take(int key, const char *value, void *input) {
    struct arguments *given = input;
    if (key == KEY_DATA) given->data = value;
    if (key == KEY_FORMAT) given->format = value;
    if (key == KEY_VALIDATION) given->validation = value;
    if (key == KEY_JSON) given->json = true;
    return 0;
}

static const struct command_line line = {
    .arguments = "CHECKPOINT",
    .doc =
        "Measure the loss of a checkpoint. CHECKPOINT is a run directory, which stands for the newest "
        "checkpoint "
        "in it, its checkpoints/best or a step_N directory there, or a checkpoint.h5."
        "\v"
        "Examples:\n"
        "  gdn eval runs/small\n"
        "  gdn eval runs/small/checkpoints/best --data book.txt --format text\n"
        "  gdn eval runs/small --validation letters --json\n"
        "  mpirun -n 4 gdn eval runs/small --set train.eval_batches=100\n"
        "\n"
        "Measured is what training measures: data.validation, or what data.validation_fraction holds out (of "
        "a "
        "mixture also each source's part), and data.validations, each under its name; or the one set that "
        "--validation names, or the file that --data names. Sequences have the run's train.sequence_length; "
        "the "
        "first train.eval_batches batches of each set are read, and with 0 every whole sequence of every "
        "source "
        "once, whatever its weight.\n\n"
        "Printed are the mean cross entropy of a token in nats and in bits, the perplexity (e to the power "
        "of "
        "the nats) and, where a tokenizer or bytes are known to be behind tokens, bits a byte: all that the "
        "tokens cost, those between "
        "documents too, over the bytes. They do not depend on the number of ranks: these share the "
        "sequences, "
        "and each holds the whole model, whatever mesh it was trained on (the run's mesh.* settings do not "
        "matter here).\n\n"
        "With --json one line is printed: an object of checkpoint, step, sequences, tokens, loss (nats a "
        "token), "
        "bits_per_token, bits_per_byte (null where not known) and perplexity, all of the first set, and "
        "losses, "
        "which has the loss of each set by its name.",
    .common = OPTION_SET,
    .own = own,
    .take = take,
    .min = 1,
    .max = 1,
};

/* What an evaluation works on. */
struct subject {
    struct mesh mesh;
    struct saved_model saved;
    struct run_tokenizer tokenizer;
    struct validation validation;
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
    char **set = calloc((size_t)count + 2, sizeof *set);
    if (!set) return gdn_fail(GDN_INTERNAL, "out of memory for the options");
    for (int i = 0; i < count; i++) set[i] = options->set[i];
    if (given->format) {
        snprintf(format, sizeof format, "data.format=%s", given->format);
        set[count++] = format;
    }
    if (given->data) set[count++] = (char *)"data.validations={}";
    int status = saved_model_load(&subject->mesh, options->argument[0], set, count, &subject->saved);
    free(set);
    return status;
}

/* With --data (load() has left the run's data.validations out). */
static int set_data(struct data_config *data, const char *path) {
    path_list_free(&data->validation);
    return path_list_add(&data->validation, path);
}

static int choose_data(struct config *config, const struct arguments *given) {
    if (given->data && given->validation)
        return gdn_fail(GDN_INPUT, "--data measures on a file and --validation on a set of the run: one of "
                                   "them is expected");
    return given->data ? set_data(&config->data, given->data) : 0;
}

/* `opened` has the data's token files. */
static int open_validation(struct subject *subject, const struct config *opened,
                           const struct arguments *given) {
    const struct config *config = &subject->saved.config;
    TRY(validation_open(opened, &subject->validation));
    TRY(run_tokenizer_verify(&subject->tokenizer, NULL, &subject->validation));
    if (subject->tokenizer.carried.name) subject->validation.bytes = &subject->tokenizer.bytes;
    if (!subject->validation.sets)
        return gdn_fail(GDN_INPUT, "%s: its run has no validation data; name a file with --data FILE",
                        subject->saved.path);
    if (given->validation)
        TRY(gdn_fail_in(validation_keep(&subject->validation, given->validation), "--validation"));
    if (validation_sequences(&subject->validation, 0) > 0) return 0;
    return gdn_fail(
        GDN_INPUT,
        "--validation %s: the first train.eval_batches %ld batches of the mixture have no sequence "
        "of it; more are expected, or --set train.eval_batches=0 for all",
        given->validation, config->train.eval_batches);
}

/* Collective. */
static int open_data(struct subject *subject, const struct arguments *given) {
    const struct mesh *mesh = &subject->mesh;
    struct config *config = &subject->saved.config;
    struct tokenized tokenized;
    TRY(mesh_agree(mesh, choose_data(config, given)));
    TRY(run_tokenizer_open(config, mesh, &subject->saved.tokenizer, subject->saved.path,
                           &subject->tokenizer));
    int status = tokenized_open(config, &subject->tokenizer, mesh, TOKENIZED_VALIDATION,
                                mesh->rank == 0 ? stderr : NULL, &tokenized);
    if (!status) status = mesh_agree(mesh, open_validation(subject, &tokenized.config, given));
    tokenized_free(&tokenized);
    return status;
}

/* Each rank has loaded the whole model: data parallel, however the run was laid out. */
static void lay_out(struct config *config) {
    for (int a = 0; a < axes_count(); a++) config->mesh.size[a] = axis_rows[a].rest ? 0 : 1;
    config->mesh.interleave = 1;
    config->mesh.sequence_parallel = false;
}

/* "1.23456 nats a token, 1.78 bits a byte, perplexity 3.4378, 60 sequences" of each set. */
static void print_sets(const struct subject *subject, FILE *out) {
    const struct validation *validation = &subject->validation;
    for (int i = 0; i < validation->sets; i++) {
        const struct evaluation_result *r = &subject->evaluation.result[i];
        long sequences = validation_sequences(validation, i);
        fprintf(out, "%-12s ", validation->set[i].name);
        if (!sequences) {
            fprintf(out, "no sequence among the first train.eval_batches batches\n");
            continue;
        }
        if (!(r->counted > 0)) {
            fprintf(out, "no target counts in the loss\n");
            continue;
        }
        fprintf(out, "%.9g nats a token", r->loss);
        if (!isnan(r->bits_per_byte)) fprintf(out, ", %.6g bits a byte", r->bits_per_byte);
        fprintf(out, ", perplexity %.6g, %ld sequences\n", evaluation_perplexity(r), sequences);
    }
}

static int print_result(const struct subject *subject, FILE *out) {
    const struct evaluation_result *r = &subject->evaluation.result[0];
    fprintf(out, "checkpoint   %s, after %ld steps\n", subject->saved.path, subject->saved.step);
    const long sequences = validation_sequences(&subject->validation, 0),
               all = validation_all(&subject->validation, 0);
    fprintf(out, "data         %ld sequences of %ld tokens", sequences, subject->evaluation.length);
    if (sequences < all) fprintf(out, ", of %ld (all: --set train.eval_batches=0)", all);
    fputc('\n', out);
    fprintf(out, "loss         %.9g nats a token\n", r->loss);
    fprintf(out, "             %.6g bits a token\n", r->loss / M_LN2);
    if (!isnan(r->bits_per_byte)) fprintf(out, "             %.6g bits a byte\n", r->bits_per_byte);
    fprintf(out, "perplexity   %.6g\n", evaluation_perplexity(r));
    if (subject->validation.sets > 1) print_sets(subject, out);
    return 0;
}

static int print_json(const struct subject *subject) {
    const struct validation *validation = &subject->validation;
    const struct evaluation_result *r = &subject->evaluation.result[0];
    const long sequences = validation_sequences(validation, 0);
    json_t *losses = json_object();
    for (int i = 0; i < validation->sets; i++)
        if (json_object_set_new(losses, validation->set[i].name,
                                json_finite(subject->evaluation.result[i].loss))) {
            json_decref(losses);
            return gdn_fail(GDN_INTERNAL, "out of memory for the output as JSON");
        }
    return json_print_line(json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "checkpoint",
        json_bytes(subject->saved.path, strlen(subject->saved.path)), "step", (json_int_t)subject->saved.step,
        "sequences", (json_int_t)sequences, "tokens", (json_int_t)r->counted, "loss", json_finite(r->loss),
        "bits_per_token", json_finite(r->loss / M_LN2), "bits_per_byte", json_finite(r->bits_per_byte),
        "perplexity", json_finite(evaluation_perplexity(r)), "losses", losses));
}

static int evaluate(struct subject *subject, const struct options *options, const struct arguments *given) {
    struct mesh *mesh = &subject->mesh;
    double loss = NAN;
    TRY(ranks_share_cores(mesh, mesh->rank == 0 ? stderr : NULL));
    TRY(load(subject, options, given));
    TRY(open_data(subject, given));
    lay_out(&subject->saved.config);
    struct saved_model *saved = &subject->saved;
    const struct ops *ops;
    TRY(saved_model_place(saved, mesh, mesh->rank == 0 ? stderr : NULL, &ops));
    TRY(evaluation_create(mesh, &saved->config, &saved->table, &saved->state, ops, &subject->validation,
                          &subject->evaluation));
    const struct edge_set *active = loop_active(&saved->config, &subject->evaluation.pipeline, saved->step);
    TRY(evaluation_loss(&subject->evaluation, active, NULL, NULL, &loss));
    int status = 0;
    if (mesh->rank == 0) status = given->json ? print_json(subject) : print_result(subject, stdout);
    return mesh_agree(mesh, status);
}

int cmd_eval(int argc, char **argv) {
    struct options options;
    struct arguments given = {0};
    char formats[FORMAT_LIST];
    snprintf(format_help, sizeof format_help, "Format of --data: %s (default: the run's data.format)",
             token_format_list(FORMATS, " or ", formats));
    int status = options_parse(&line, argc, argv, &options, &given);
    if (!status && !options.done) {
        struct subject subject = {0};
        status = ranks_begin(&subject.mesh);
        if (!status) status = evaluate(&subject, &options, &given);
        if (executor_failed(subject.evaluation.executor)) ranks_abort(&subject.mesh, status);
        evaluation_free(&subject.evaluation);
        validation_close(&subject.validation);
        run_tokenizer_free(&subject.tokenizer);
        saved_model_free(&subject.saved);
        status = ranks_end(&subject.mesh, status);
    }
    options_free(&options);
    return status;
}
