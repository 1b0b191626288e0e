#include "train/huggingface/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/append.h"
#include "kernels/base/status.h"
#include "train/config/number.h"

/* ------------------------------------------------------------------------------------------- family */

/* What modeling_gdn.py has; programs beside gdn may have more. */
static const char *const gates[] = {"bottleneck", "full", "adaptive", NULL};
static const char *const aggregates[] = {"learned", "mean", "attention", "multihead", NULL};
static const char *const rules[] = {"dense", "value", "lane", "mix", "depth_attention", "hyper", NULL};

/* Whether a value, a word in quotes, is one of the list's. */
static bool is_one(const char *quoted, const char *const *list) {
    for (; *list; list++)
        if (!strncmp(quoted + 1, *list, strlen(*list)) && !strcmp(quoted + 1 + strlen(*list), "\""))
            return true;
    return false;
}

static int verify_word(const struct config *config, const char *path, const char *const *list) {
    char *word = config_json(config, path);
    int status = !word ? gdn_fail(GDN_INTERNAL, "out of memory for %s", path)
                 : is_one(word, list)
                     ? GDN_OK
                     : gdn_fail(GDN_INPUT, "%s is %s, which modeling_gdn.py does not have", path, word);
    free(word);
    return status;
}

/* Of an entry only its kind can be one that modeling_gdn.py lacks. */
static int verify_rules(const struct config *config) {
    static const char kind[] = "{\"kind\": ";
    char *list = config_json(config, "model.rules");
    int status = list ? GDN_OK : gdn_fail(GDN_INTERNAL, "out of memory for model.rules");
    for (char *at = list; !status && (at = strstr(at, kind));) {
        at += strlen(kind);
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ",}"), at);
        if (!is_one(word, rules))
            status = gdn_fail(GDN_INPUT, "model.rules has kind %s, which modeling_gdn.py does not", word);
    }
    free(list);
    return status;
}

/* Whether a family's keys can say all of a model; those of gdn's own, which is the last, can. */
static bool fits(const struct model_config *model, const struct family *family) {
    if (family->own_code) return true;
    if (delta_connects(&model->delta) || model->num_rules || model->logit_softcap > 0) return false;
    if (model->qk_norm != (family->qk_norm ? QK_NORM_HEAD : QK_NORM_NONE)) return false;
    if (family->whole && model->hidden_size % model->num_heads) return false;
    return family->bias_key ? model->attention_bias != BIAS_QKV : model->attention_bias == family->bias;
}

int describe_family(const struct config *config, const struct family **out) {
    const struct model_config *model = &config->model;
    if (model->num_mixers) return gdn_fail(GDN_INPUT, "modeling_gdn.py has no mixer of tokens but attention");
    if (model->exit.num_layers)
        return gdn_fail(GDN_INPUT, "model.exit has %d layers: modeling_gdn.py has no exits, and none are expected",
                        model->exit.num_layers);
    if (delta_connects(&model->delta)) {
        TRY(verify_word(config, "model.delta.kind", gates));
        TRY(verify_word(config, "model.delta.aggregate", aggregates));
    }
    int i = 0;
    while (!fits(model, family_row(i))) i++;
    *out = family_row(i);
    return verify_rules(config);
}

/* ------------------------------------------------------------------------------------------- keys */

/* Keys of an object, in any order; what becomes of them is sorted, as save_pretrained writes it. */
enum { LINES = 48 };
struct lines {
    char *line[LINES];
    int count;
    bool failed;
};

/* Adds `"NAME": VALUE`, the value being JSON. */
static void add(struct lines *l, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(struct lines *l, const char *name, const char *format, ...) {
    char *value;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&value, format, arguments) < 0) value = NULL;
    va_end(arguments);
    if (!value || l->count == LINES || asprintf(&l->line[l->count], "  \"%s\": %s", name, value) < 0)
        l->failed = true;
    else
        l->count++;
    free(value);
}

/* The same of a value that is the caller's to give; NULL: there was no memory for it. */
static void add_owned(struct lines *l, const char *name, char *value) {
    if (value)
        add(l, name, "%s", value);
    else
        l->failed = true;
    free(value);
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The object as text; NULL without memory. Frees the lines. */
static char *finish(struct lines *l) {
    char *text = NULL;
    size_t length;
    FILE *out = l->failed ? NULL : open_memstream(&text, &length);
    qsort(l->line, (size_t)l->count, sizeof *l->line, compare);
    for (int i = 0; i < l->count; i++) {
        if (out) fprintf(out, "%s%s", i ? ",\n" : "{\n", l->line[i]);
        free(l->line[i]);
    }
    if (!out) return NULL;
    fputs("\n}\n", out);
    return fclose(out) ? (free(text), NULL) : text;
}

static void add_token(struct lines *l, const char *name, int32_t id) {
    if (id >= 0)
        add(l, name, "%d", id);
    else
        add(l, name, "null"); /* left out it would be a family's own */
}

static void add_ends(struct lines *l, const struct text_ends *ends) {
    add_token(l, "bos_token_id", ends->first);
    add_token(l, "eos_token_id", ends->last);
}

/* model.rope_scaling as keys of JSON, each with a comma before it; of none there is nothing. Returns `out`.
 */
enum { SCALING_TEXT = 512 };
static const char *scaling_text(const struct config *config, char out[SCALING_TEXT]) {
    const struct rope_scaling *scaling = &config->model.rope_scaling;
    char factor[NUMBER_TEXT], low[NUMBER_TEXT], high[NUMBER_TEXT];
    char *kind = config_json(config, "model.rope_scaling.kind");
    size_t used = 0;
    number_write(scaling->factor, factor);
    number_write(scaling->low_freq_factor, low);
    number_write(scaling->high_freq_factor, high);
    out[0] = 0;
    if (kind && scaling->kind)
        used = text_append(out, SCALING_TEXT, 0, ", \"rope_type\": %s, \"factor\": %s", kind, factor);
    if (kind && !strcmp(kind, "\"llama3\""))
        text_append(
            out, SCALING_TEXT, used,
            ", \"low_freq_factor\": %s, \"high_freq_factor\": %s, \"original_max_position_embeddings\": %d",
            low, high, scaling->original_max_position_embeddings);
    free(kind);
    return out;
}

/* Both spellings of rotary positions: programs of one time do not read the other's. */
static void add_rope(struct lines *l, const struct config *config) {
    char theta[NUMBER_TEXT], scaling[SCALING_TEXT];
    number_write(config->model.rope_theta, theta);
    scaling_text(config, scaling);
    add(l, "rope_parameters", "{\"rope_theta\": %s%s}", theta,
        scaling[0] ? scaling : ", \"rope_type\": \"default\"");
    if (scaling[0]) add(l, "rope_scaling", "{%s}", scaling + 2);
    add(l, "rope_theta", "%s", theta);
}

static void add_trunk(struct lines *l, const struct config *config) {
    const struct model_config *model = &config->model;
    char eps[NUMBER_TEXT];
    number_write(model->norm_eps, eps);
    add(l, "head_dim", "%d", head_width(model));
    add(l, "hidden_act", "\"silu\"");
    add(l, "hidden_size", "%d", model->hidden_size);
    add(l, "initializer_range", "0.02");
    add(l, "intermediate_size", "%d", model->intermediate_size);
    add(l, "max_position_embeddings", "%d", config->train.sequence_length);
    add(l, "num_attention_heads", "%d", model->num_heads);
    add(l, "num_hidden_layers", "%d", model->num_layers);
    add(l, "num_key_value_heads", "%d", model->num_kv_heads);
    add(l, "pad_token_id", "null");
    add(l, "rms_norm_eps", "%s", eps);
    add(l, "tie_word_embeddings", "%s", model->tie_embeddings ? "true" : "false");
    add(l, "use_cache", "true");
    add(l, "vocab_size", "%d", model->vocab_size);
    add_rope(l, config);
}

/* What a family alone has. */
static void add_others(struct lines *l, const struct config *config, const struct family *family) {
    add(l, "attention_dropout", "0.0");
    if (family->bias_key) add(l, "attention_bias", config->model.attention_bias ? "true" : "false");
    if (family->whole) add(l, "mlp_bias", "false");
    add(l, "sliding_window", "null");
    add(l, "use_sliding_window", "false");
}

static void add_gdn(struct lines *l, const struct config *config) {
    add(l, "auto_map",
        "{\n    \"AutoConfig\": \"configuration_gdn.GdnConfig\",\n    \"AutoModelForCausalLM\": "
        "\"modeling_gdn.GdnForCausalLM\"\n  }");
    add(l, "active_distances", "null");
    add(l, "attention_dropout", "0.0");
    add_owned(l, "attention_bias", config_json(config, "model.attention_bias"));
    add_owned(l, "qk_norm", config_json(config, "model.qk_norm"));
    add_owned(l, "delta", config_json(config, "model.delta."));
    add_owned(l, "rules", config_json(config, "model.rules"));
    add_owned(l, "logit_softcap", config_json(config, "model.logit_softcap"));
}

char *describe_model(const struct config *config, const struct family *family, const char *dtype,
                     const struct text_ends *ends) {
    struct lines lines = {0};
    add(&lines, "architectures", "[\n    \"%s\"\n  ]", family->architecture);
    add(&lines, "model_type", "\"%s\"", family->model_type);
    add(&lines, "dtype", "\"%s\"", dtype);
    add(&lines, "torch_dtype", "\"%s\"", dtype);
    add_trunk(&lines, config);
    add_ends(&lines, ends);
    if (family->own_code)
        add_gdn(&lines, config);
    else
        add_others(&lines, config, family);
    return finish(&lines);
}

char *describe_generation(const struct text_ends *ends) {
    struct lines lines = {0};
    add_ends(&lines, ends);
    add(&lines, "use_cache", "true");
    return finish(&lines);
}
