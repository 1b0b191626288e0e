/* A checkpoint given out as a folder. */
#include "train/huggingface/huggingface.h"

#include <inttypes.h>
#include <stdlib.h>

#include "data/documents/separator.h"
#include "data/safetensors/write.h"
#include "dist/checkpoint/weights.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/table/params.h"
#include "train/huggingface/describe.h"
#include "train/huggingface/names.h"
#include "data/outcome.h"
#include "train/huggingface/python.h"

/* What is exported. */
struct subject {
    struct weights weights;
    struct config config;
    const struct family *family;
    struct text_ends ends;
    struct table global;
    char (*name)[NAME_LONGEST]; /* [rows] of the tensors outside */
    struct tensor_entry *entry; /* [rows] */
};

static int give(void *context, int entry, tensor_put *put, void *sink) {
    const struct subject *s = context;
    return weights_read(&s->weights, &s->global.row[entry], put, sink);
}

static int list_tensors(struct subject *s) {
    size_t rows = (size_t)s->global.rows;
    s->name = malloc(rows * sizeof *s->name);
    s->entry = malloc(rows * sizeof *s->entry);
    if (!s->name || !s->entry) return gdn_fail(GDN_INTERNAL, "out of memory for %zu tensors", rows);
    for (int i = 0; i < s->global.rows; i++) {
        const struct row *row = &s->global.row[i];
        s->entry[i] = (struct tensor_entry){.name = name_outside(row->name, s->name[i]),
                                            .ndim = row->ndim,
                                            .shape = {row->shape[0], row->shape[1]}};
    }
    return GDN_OK;
}

/* A distance that is yet to be introduced has tensors that nothing computes with. */
static int verify_introduced(struct subject *s, const char *path) {
    struct delta_config *delta = &s->config.model.delta;
    int64_t step = s->weights.checkpoint.info.step;
    int introduced = active_distances(delta, step > 0 ? (long)step - 1 : 0);
    if (delta->stage_steps && introduced < delta->num_distances)
        return gdn_fail(
            GDN_INPUT,
            "%s cannot be exported: after %" PRId64
            " steps %d of the %d of model.delta.distances are introduced (model.delta.stage_steps %d)",
            path, step, introduced, delta->num_distances, delta->stage_steps);
    delta->stage_steps = 0;
    return GDN_OK;
}

static int verify_end(const struct subject *s, const struct carried *carried, int32_t id) {
    if (id < s->config.model.vocab_size) return GDN_OK;
    return gdn_fail(GDN_INPUT, "a text begins or ends with token %d of %s, but model.vocab_size is %d", id,
                    carried->name, s->config.model.vocab_size);
}

static int find_ends(struct subject *s, const struct carried *carried) {
    struct tokenizer *tokenizer;
    TRY(carried_open(carried, &tokenizer));
    int status = separator_find_first(tokenizer, carried, &s->ends.first);
    if (!status) status = separator_find(tokenizer, carried, NULL, &s->ends.last);
    tokenizer_close(tokenizer);
    if (!status) status = verify_end(s, carried, s->ends.first);
    return status ? status : verify_end(s, carried, s->ends.last);
}

/* By the tokenizer that the checkpoint carries; else, where tokens are bytes, by that. */
static int know_ends(struct subject *s, const char *path) {
    const struct checkpoint_info *info = &s->weights.checkpoint.info;
    struct carried carried = {.name = NULL};
    int status = info->tokenizer ? carried_take(path, info->tokenizer, info->tokenizer_config, &carried)
                 : config_tokens_are_bytes(&s->config) ? carried_read("bytes", &carried)
                                                       : GDN_OK;
    s->ends = (struct text_ends){-1, -1};
    if (!status && carried.name) status = find_ends(s, &carried);
    carried_free(&carried);
    return gdn_fail_in(status, "%s cannot be exported", path);
}

/* What can be found out before anything is written. */
static int prepare(struct subject *s, const char *path) {
    const struct checkpoint_info *info = &s->weights.checkpoint.info;
    struct config_asked asked;
    int stored;
    TRY(config_parse_trained(info->config, path, NULL, 0, &s->config, &asked));
    TRY(gdn_fail_in(config_keep_left(&s->config, info->pruning), "%s", path));
    TRY(gdn_fail_in(describe_family(&s->config, &s->family), "%s cannot be exported", path));
    TRY(verify_introduced(s, path));
    TRY(know_ends(s, path));
    TRY(params_create(&s->config.model, NULL, &s->global));
    TRY(weights_count(&s->weights, &stored));
    if (info->pruning ? stored < s->global.rows : stored != s->global.rows) /* it has those of all connections */
        return gdn_fail(GDN_INPUT, "%s has %d tensors where its configuration makes %d", path, stored,
                        s->global.rows);
    return list_tensors(s);
}

static int write_json(const struct outcome *outcome, const char *name, char *text) {
    int status = outcome_write(outcome, name, text);
    free(text);
    return status;
}

/* As the checkpoint carries it; where it has no tokenizer_config.json, one that says how to open the other.
 */
static int write_tokenizer(const struct checkpoint_info *info, const struct outcome *outcome) {
    static const char config[] = "{\n  \"clean_up_tokenization_spaces\": false,\n  \"tokenizer_class\": "
                                 "\"PreTrainedTokenizerFast\"\n}\n";
    if (!info->tokenizer) return GDN_OK;
    TRY(outcome_write(outcome, "tokenizer.json", info->tokenizer));
    return outcome_write(outcome, "tokenizer_config.json",
                         info->tokenizer_config ? info->tokenizer_config : config);
}

static int fill(const struct subject *s, const struct outcome *outcome,
                const struct huggingface_options *options) {
    const struct safetensors_content content = {.count = s->global.rows,
                                                .entry = s->entry,
                                                .dtype = dtype_of_word(options->dtype), /* known */
                                                .shard = options->shard,
                                                .give = give,
                                                .context = (void *)s};
    TRY(write_json(outcome, "config.json", describe_model(&s->config, s->family, options->dtype, &s->ends)));
    TRY(write_json(outcome, "generation_config.json", describe_generation(&s->ends)));
    TRY(write_tokenizer(&s->weights.checkpoint.info, outcome));
    for (int i = 0; s->family->own_code && i < PYTHON_FILES; i++)
        TRY(outcome_write(outcome, python_files[i].name, python_files[i].text));
    return safetensors_write(outcome->partial, &content);
}

static int write_folder(const struct subject *s, const char *directory,
                        const struct huggingface_options *options) {
    struct outcome outcome;
    int status = outcome_open(directory, &outcome);
    if (!status) status = fill(s, &outcome, options);
    if (!status) status = outcome_finish(&outcome);
    outcome_close(&outcome);
    return status;
}

int huggingface_export(const char *checkpoint, const char *directory,
                       const struct huggingface_options *options) {
    struct subject s = {0};
    if (!dtype_of_word(options->dtype))
        return gdn_fail(GDN_INPUT, "'%s': float32, bfloat16 or float16 is expected", options->dtype);
    TRY(weights_open(checkpoint, &s.weights));
    int status = prepare(&s, checkpoint);
    if (!status) status = write_folder(&s, directory, options);
    free(s.name);
    free(s.entry);
    params_free(&s.global);
    config_free(&s.config);
    weights_close(&s.weights);
    return status;
}
