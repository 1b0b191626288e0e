#include "train/run/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/documents/separator.h"
#include "train/huggingface/huggingface.h"

int run_tokenizer_of_checkpoint(const struct checkpoint_info *info, const char *path, struct carried *out) {
    struct config config;
    struct config_asked asked;
    *out = (struct carried){.name = NULL};
    if (info->tokenizer) return carried_take(path, info->tokenizer, info->tokenizer_config, out);
    TRY(config_parse_trained(info->config, path, NULL, 0, &config, &asked));
    int status = config_tokens_are_bytes(&config) ? carried_read("bytes", out) : 0;
    config_free(&config);
    return status;
}

static bool is_folder(const char *path) {
    struct stat is;
    return !stat(path, &is) && S_ISDIR(is.st_mode);
}

int run_tokenizer_of_weights(const char *path, struct carried *out) {
    char *file, *configuration;
    *out = (struct carried){.name = NULL};
    if (huggingface_is(path)) return huggingface_carried(path, out);
    if (is_folder(path))
        return gdn_fail(GDN_INPUT,
                        "%s is a folder without config.json: an HDF5 file is expected, as a run's "
                        "checkpoints/STEP/checkpoint.h5, or a folder of Hugging Face's",
                        path);
    int status = checkpoint_initial_tokenizer(path, &file, &configuration);
    if (!status) status = carried_take(path, file, configuration, out);
    free(file);
    free(configuration);
    return status;
}

/* Rank 0: the files themselves. */
static int read_files(const struct config *config, const struct carried *before, const char *owner,
                      struct carried *out) {
    const char *name = config->data.tokenizer;
    char now[CARRIED_TEXT], then[CARRIED_TEXT];
    if (!name[0] && before->file) return carried_take(before->name, before->file, before->configuration, out);
    if (!name[0] && (before->name || config_tokens_are_bytes(config))) name = "bytes";
    if (!name[0]) return 0;
    TRY(gdn_fail_in(carried_read(name, out), "data.tokenizer"));
    if (!before->name || carried_hash(before) == carried_hash(out)) return 0;
    return gdn_fail(
        GDN_INPUT,
        "data.tokenizer: %s (%s) is another tokenizer than that of %s (%s), by which its tokens mean "
        "something",
        name, carried_text(out, now), owner, carried_text(before, then));
}

/* A text, or NULL, of rank 0 to all. */
static int share_text(const struct mesh *mesh, char **text) {
    long length = *text ? (long)strlen(*text) + 1 : 0;
    TRY(mesh_broadcast(mesh, &length, sizeof length));
    if (mesh->rank) *text = length ? malloc((size_t)length) : NULL;
    TRY(mesh_agree(mesh, !length || *text ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a tokenizer")));
    return length ? mesh_broadcast(mesh, *text, length) : 0;
}

static int share(const struct mesh *mesh, struct carried *carried) {
    if (mesh->size == 1) return 0;
    TRY(share_text(mesh, &carried->name));
    TRY(share_text(mesh, &carried->file));
    return share_text(mesh, &carried->configuration);
}

/* Every rank by itself. */
static int open_shared(const struct config *config, struct run_tokenizer *out) {
    struct tokenizer *tokenizer;
    int32_t separator;
    TRY(carried_open(&out->carried, &tokenizer));
    out->vocab = tokenizer_vocab(tokenizer);
    int status = 0;
    if (out->vocab > config->model.vocab_size)
        status = gdn_fail(GDN_INPUT,
                          "model.vocab_size is %d, and %s has %ld tokens: as many are expected, or more",
                          config->model.vocab_size, out->carried.name, out->vocab);
    if (!status) status = separator_find(tokenizer, &out->carried, NULL, &separator);
    if (!status) status = token_bytes_create(tokenizer, separator, &out->bytes);
    tokenizer_close(tokenizer);
    return gdn_fail_in(status, "data.tokenizer");
}

int run_tokenizer_open(const struct config *config, const struct mesh *mesh, const struct carried *before,
                       const char *owner, struct run_tokenizer *out) {
    *out = (struct run_tokenizer){.vocab = 0};
    TRY(mesh_agree(mesh, mesh->rank ? 0 : read_files(config, before, owner, &out->carried)));
    TRY(share(mesh, &out->carried));
    return out->carried.name ? mesh_agree(mesh, open_shared(config, out)) : 0;
}

int run_tokenizer_verify(const struct run_tokenizer *tokenizer, const struct sampler *training,
                         const struct validation *validation) {
    const struct carried *carried = &tokenizer->carried;
    if (!carried->name) return 0;
    const uint64_t hash = carried_hash(carried);
    if (training) TRY(sampler_verify_tokenizer(training, hash, carried->name));
    for (int i = 0; i < validation->samplers; i++)
        TRY(sampler_verify_tokenizer(validation->sampler[i], hash, carried->name));
    return 0;
}

void run_tokenizer_free(struct run_tokenizer *tokenizer) {
    carried_free(&tokenizer->carried);
    token_bytes_free(&tokenizer->bytes);
    *tokenizer = (struct run_tokenizer){.vocab = 0};
}
