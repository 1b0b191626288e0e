#include "train/command/subject.h"

#include "data/format.h"
#include "data/output.h"
#include "kernels/base/status.h"
#include "train/command/options.h"
#include "train/command/outputs.h"
#include "train/run/backend.h"
#include "train/run/ranks.h"
#include "train/run/tokenized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char subject_format_help[2 * FORMAT_LIST];

void subject_begin(void) {
    char formats[FORMAT_LIST];
    snprintf(subject_format_help, sizeof subject_format_help,
             "Format of --data: %s (default: the run's data.format)",
             token_format_list(FORMATS, " or ", formats));
}

bool subject_take(struct subject_options *options, int key, const char *value) {
    switch (key) {
    case SUBJECT_KEY_DATA:
        options->data = value;
        return true;
    case SUBJECT_KEY_FORMAT:
        options->format = value;
        return true;
    case SUBJECT_KEY_VALIDATION:
        options->validation = value;
        return true;
    default:
        return false;
    }
}

int subject_verify_output(const char *option, const char *path, const struct options *options,
                          const struct subject_options *given) {
    TRY(outputs_verify(option, path, options->argument[0]));
    return given->data ? output_refuse_input(path, given->data, "the data") : GDN_OK;
}

/* Loads the model with --set and --format over its configuration. Collective. */
static int load(struct subject *subject, const struct options *options, const struct subject_options *given) {
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

static int choose_data(struct config *config, const struct subject_options *given) {
    if (given->data && given->validation)
        return gdn_fail(GDN_INPUT, "--data measures on a file and --validation on a set of the run: one of "
                                   "them is expected");
    if (!given->data) return 0;
    const char *path;
    TRY(options_path("--data", given->data, &path));
    return set_data(&config->data, path);
}

/* `opened` has the data's token files. */
static int open_validation(struct subject *subject, const struct config *opened,
                           const struct subject_options *given) {
    const struct config *config = &subject->saved.config;
    TRY(validation_open(opened, &subject->validation));
    TRY(run_tokenizer_verify(&subject->tokenizer, NULL, &subject->validation));
    if (subject->tokenizer.carried.name) subject->validation.bytes = &subject->tokenizer.bytes;
    if (!subject->validation.sets)
        return gdn_fail(GDN_INPUT, "%s: its run has no validation data; name a file with --data FILE",
                        subject->saved.path);
    if (given->first && !given->validation)
        TRY(validation_keep(&subject->validation, subject->validation.set[0].name));
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
static int open_data(struct subject *subject, const struct subject_options *given) {
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
    config->mesh.schedule = SCHEDULE_1F1B;
    config->mesh.sequence_parallel = false;
    config->mesh.tensor_pieces = 1;
    config->mesh.sum_group = 1;
}

int subject_load(struct subject *subject, const struct options *options,
                 const struct subject_options *given) {
    struct mesh *mesh = &subject->mesh;
    struct saved_model *saved = &subject->saved;
    TRY(ranks_share_cores(mesh, mesh->rank == 0 ? stderr : NULL));
    TRY(load(subject, options, given));
    TRY(open_data(subject, given));
    lay_out(&saved->config);
    TRY(saved_model_place(saved, mesh, mesh->rank == 0 ? stderr : NULL, &subject->ops));
    if (mesh->rank == 0)
        backend_note(subject->ops, "gdn: note: ", stderr); /* of whole passes; generation reads less */
    return evaluation_create(mesh, &saved->config, &saved->table, &saved->state, subject->ops,
                             &subject->validation, &subject->evaluation);
}

void subject_free(struct subject *subject) {
    evaluation_free(&subject->evaluation);
    validation_close(&subject->validation);
    run_tokenizer_free(&subject->tokenizer);
    saved_model_free(&subject->saved);
}
