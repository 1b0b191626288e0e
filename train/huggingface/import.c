/* A folder taken in: as a checkpoint, or as a run's starting weights. */
#include "train/huggingface/huggingface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/output.h"
#include "kernels/base/status.h"
#include "model/table/params.h"
#include "train/huggingface/settings.h"
#include "train/huggingface/source.h"

bool huggingface_is(const char *path) {
    char *name;
    if (asprintf(&name, "%s/config.json", path) < 0) return false;
    bool there = !access(name, F_OK);
    free(name);
    return there;
}

/* The section `model` of a configuration's text, which is its first. */
static void print_model(const char *text, FILE *out) {
    const char *end = strstr(text, "\ntrain:");
    fprintf(out, "%.*s\n", (int)(end ? end - text : (long)strlen(text)), text);
}

static int write_checkpoint(const char *path, const struct config *config, const struct table *global,
                            const struct source *source, const struct carried *tokenizer, FILE *out) {
    struct checkpoint_info info = {.config = config_text(config),
                                   .tokenizer = tokenizer->file,
                                   .tokenizer_config = tokenizer->configuration,
                                   .best_loss = NAN,
                                   .loss = NAN};
    if (!info.config) return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    int status = weights_write(path, global, &info, &source->weights);
    if (!status) print_model(info.config, out);
    free(info.config);
    return status;
}

static int read_tokenizer(const char *name, struct carried *out) {
    struct tokenizer *tokenizer;
    TRY(carried_read(name, out));
    TRY(carried_open(out, &tokenizer));
    tokenizer_close(tokenizer);
    return GDN_OK;
}

/* What the failure says is the reason. */
static void leave_out(struct carried *tokenizer) {
    fprintf(stderr, "gdn: note: the folder's tokenizer is left out: %s\n", gdn_failure());
    gdn_failure_clear();
    carried_free(tokenizer);
}

int huggingface_carried(const char *directory, struct carried *out) {
    char *name;
    *out = (struct carried){.name = NULL};
    if (asprintf(&name, "%s/tokenizer.json", directory) < 0)
        return gdn_fail(GDN_INTERNAL, "%s: no memory", directory);
    int status = access(name, F_OK) ? GDN_OK : read_tokenizer(name, out);
    free(name);
    if (status != GDN_INPUT) return status;
    leave_out(out);
    return GDN_OK;
}

/* A tokenizer of more tokens than the model has room for is no use to it. */
static int leave_out_larger(const struct config *config, struct carried *carried) {
    struct tokenizer *tokenizer;
    if (!carried->name) return GDN_OK;
    TRY(carried_open(carried, &tokenizer));
    const long tokens = tokenizer_vocab(tokenizer), room = config->model.vocab_size;
    tokenizer_close(tokenizer);
    if (tokens <= room) return GDN_OK;
    gdn_fail(GDN_INPUT, "%s has %ld tokens, and vocab_size of config.json is %ld", carried->name, tokens,
             room);
    leave_out(carried);
    return GDN_OK;
}

static int write_imported(const char *directory, const char *path, struct carried *tokenizer, FILE *out) {
    struct config config;
    struct table global;
    struct source source;
    TRY(settings_read(directory, &config));
    int status = params_create(&config.model, NULL, &global);
    if (!status) {
        status = source_open(directory, &config.model, "config.json", &global, &source);
        if (!status) {
            status = leave_out_larger(&config, tokenizer);
            if (!status) status = write_checkpoint(path, &config, &global, &source, tokenizer, out);
            source_close(&source);
        }
        params_free(&global);
    }
    config_free(&config);
    return status;
}

int huggingface_import(const char *directory, const char *path, FILE *out) {
    struct carried tokenizer;
    TRY(output_verify("OUT.h5", path));
    int status = huggingface_carried(directory, &tokenizer);
    if (!status) status = write_imported(directory, path, &tokenizer, out);
    carried_free(&tokenizer);
    return status;
}

/* Whether the folder's trunk is the run's: widths show in the tensors, but not what is computed with them. */
static int match(const char *directory, const struct config *config) {
    struct config folder;
    TRY(settings_read(directory, &folder));
    int status = config_match_trunk(config, &folder, directory);
    config_free(&folder);
    return status;
}

int huggingface_load(const struct mesh *mesh, const char *directory, const struct config *config,
                     const struct checkpoint_content *content, int *missing) {
    struct source source;
    TRY(mesh_agree(mesh, match(directory, config)));
    int own = source_open(directory, &config->model, "the run's configuration", content->global, &source),
        status = mesh_agree(mesh, own);
    if (status) {
        if (!own) source_close(&source);
        return status;
    }
    status = weights_load(mesh, content, &source.weights, missing);
    source_close(&source);
    return status;
}
