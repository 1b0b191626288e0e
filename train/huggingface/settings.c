/* The keys of a config.json, a row each. What is in no row is not understood. */
#include "train/huggingface/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/fields.h"
#include "data/tokens.h"
#include "kernels/base/status.h"

/* Tokens that a sequence has unless the configuration to train with says otherwise. */
enum { SEQUENCE_LONGEST = 2048 };

enum { LENGTH_LONGEST = 1 << 20 }; /* of a config.json */

/* ------------------------------------------------------------------------------------------- keys */

typedef int take_key(struct settings *s, const char *name, const json_t *value);

/* A value that gdn's configuration has in the same form, of which JSON is a part. */
static int take_json(struct settings *s, const char *name, const json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    if (!text) return gdn_fail(GDN_INTERNAL, "out of memory for %s", s->path);
    settings_add(s, "%s: %s", name, text);
    free(text);
    return GDN_OK;
}

static int take_window(struct settings *s, const char *name, const json_t *value) {
    const json_t *used = json_object_get(s->object, "use_sliding_window");
    if (json_is_null(value) || (s->family->window_switch && json_is_false(used))) return GDN_OK;
    if (json_is_integer(value) && json_integer_value(value) >= s->context) return GDN_OK;
    return settings_refuse(s, name, value, "null, or all of max_position_embeddings,");
}

static int take_layer_types(struct settings *s, const char *name, const json_t *value) {
    size_t i;
    json_t *type;
    bool all = json_is_array(value);
    json_array_foreach(value, i, type) all =
        all && json_is_string(type) && !strcmp(json_string_value(type), "full_attention");
    return all ? GDN_OK : settings_refuse(s, name, value, "\"full_attention\" of all layers");
}

/* Whether all projections of attention have biases; what a family always has is not said here. */
static int take_bias(struct settings *s, const char *name, const json_t *value) {
    if (s->family->own_code && json_is_string(value)) return take_json(s, name, value);
    if (json_is_false(value)) return GDN_OK;
    if (!json_is_true(value) || !s->family->bias_key) return settings_refuse(s, name, value, "false");
    settings_add(s, "attention_bias: all");
    return GDN_OK;
}

static int take_architectures(struct settings *s, const char *name, const json_t *value) {
    const char *first = json_string_value(json_array_get(value, 0));
    if (json_is_null(value)) return GDN_OK;
    if (json_array_size(value) == 1 && first && !strcmp(first, s->family->architecture)) return GDN_OK;
    char right[80];
    snprintf(right, sizeof right, "[\"%s\"]", s->family->architecture);
    return settings_refuse(s, name, value, right);
}

struct key {
    const char *name;
    const char *key;  /* of gdn's section `model`, a number or truth value */
    const char *only; /* the value that it must have, as JSON: the only one that gdn computes */
    take_key *take;
    bool own;  /* of gdn's own family alone */
    bool null; /* may be null: as if it were left out */
};
/* None of key, only and take: it changes nothing of what the model computes from tokens, or is read
 * elsewhere. */

static const struct key keys[] = {
    {"vocab_size", .key = "vocab_size"},
    {"hidden_size", .key = "hidden_size"},
    {"num_hidden_layers", .key = "num_layers"},
    {"num_attention_heads", .key = "num_heads"},
    {"num_key_value_heads", .key = "num_kv_heads", .null = true},
    {"intermediate_size", .key = "intermediate_size"},
    {"rms_norm_eps", .key = "norm_eps"},
    {"tie_word_embeddings", .key = "tie_embeddings"},
    {"architectures", .take = take_architectures},
    {"head_dim", .key = "head_dim", .null = true},
    {"sliding_window", .take = take_window},
    {"layer_types", .take = take_layer_types},
    {"hidden_act", .only = "\"silu\""},
    {"delta", .take = take_json, .own = true},
    {"rules", .take = take_json, .own = true},
    {"logit_softcap", .key = "logit_softcap", .own = true},
    {"qk_norm", .take = take_json, .own = true},
    {"active_distances", .only = "null", .own = true},
    {"auto_map", .own = true},
    {"attention_bias", .take = take_bias},
    {"mlp_bias", .only = "false"},
    {"use_sliding_window", .only = "false"},
    {"use_mrope", .only = "false"}, /* Qwen2.5's smaller models say so */
    {"attention_dropout", .only = "0.0"},
    {"partial_rotary_factor", .only = "1.0"},
    {"rope_interleaved", .only = "false"},
    {"is_encoder_decoder", .only = "false"},
    {.name = "model_type"},
    {.name = "max_position_embeddings"},
    {.name = "rope_theta"},
    {.name = "rope_scaling"},
    {.name = "rope_parameters"},
    {.name = "torch_dtype"}, /* each tensor says its own */
    {.name = "dtype"},
    {.name = "bos_token_id"},
    {.name = "eos_token_id"},
    {.name = "pad_token_id"},
    {.name = "initializer_range"},
    {.name = "use_cache"},
    {.name = "pretraining_tp"},
    {.name = "max_window_layers"}, /* of a sliding window */
    {.name = "is_llama_config"},
    {.name = "transformers_version"},
    {.name = "transformers.js_config"},
    {.name = "_name_or_path"},
    {.name = "_commit_hash"},
    {.name = "_attn_implementation_autoset"},
    {.name = "output_attentions"},
    {.name = "output_hidden_states"},
    {.name = "return_dict"},
    {.name = "chunk_size_feed_forward"},
    {.name = "id2label"},
    {.name = "label2id"},
    {.name = "problem_type"},
    {.name = "tokenizer_class"},
    {.name = "unsloth_fixed"},
    {.name = "unsloth_version"},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* Keys without which nothing is known of a model. */
static const char *const needed[] = {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                                     "intermediate_size"};

/* Equal, where 0 and 0.0 are. */
static bool same(const json_t *a, const json_t *b) {
    return json_equal(a, b) ||
           (json_is_number(a) && json_is_number(b) && json_number_value(a) == json_number_value(b));
}

static int take_only(const struct settings *s, const struct key *key, const json_t *value) {
    json_t *only = json_loads(key->only, JSON_DECODE_ANY, NULL);
    int status = only ? GDN_OK : gdn_fail(GDN_INTERNAL, "out of memory for %s", s->path);
    if (!status && !same(only, value)) status = settings_refuse(s, key->name, value, key->only);
    json_decref(only);
    return status;
}

static int take_setting(struct settings *s, const struct key *key, const json_t *value) {
    if (json_is_null(value) && key->null) return GDN_OK;
    if (json_is_integer(value))
        settings_add(s, "%s: %" JSON_INTEGER_FORMAT, key->key, json_integer_value(value));
    else if (json_is_real(value))
        settings_add(s, "%s: %.17g", key->key, json_real_value(value));
    else if (json_is_boolean(value))
        settings_add(s, "%s: %s", key->key, json_is_true(value) ? "true" : "false");
    else
        return settings_refuse(s, key->name, value, "a number or truth value");
    return GDN_OK;
}

static int take(struct settings *s, const char *name, const json_t *value) {
    for (int k = 0; k < KEYS; k++) {
        if (strcmp(keys[k].name, name) || (keys[k].own && !s->family->own_code)) continue;
        if (keys[k].key) return take_setting(s, &keys[k], value);
        if (keys[k].only) return take_only(s, &keys[k], value);
        return keys[k].take ? keys[k].take(s, name, value) : GDN_OK;
    }
    json_t *unknown = json_string(name);
    char shown[SHOWN_JSON];
    int status = gdn_fail(GDN_INPUT,
                          "%s: key %s is not known, and may change what the model computes; without it the "
                          "model can be imported",
                          s->path, settings_shown(unknown, shown));
    json_decref(unknown);
    return status;
}

/* ------------------------------------------------------------------------------------------- all of it */

static int find_family(struct settings *s) {
    const json_t *type = json_object_get(s->object, "model_type");
    const char *word = json_string_value(type);
    s->family = word ? family_of(word) : NULL;
    return s->family ? GDN_OK : settings_refuse(s, "model_type", type, family_words());
}

static int fill_absent(struct settings *s) {
    for (const struct family_key *key = s->family->absent; key->name; key++)
        if (!json_object_get(s->object, key->name))
            json_object_set_new(s->object, key->name, json_loads(key->value, JSON_DECODE_ANY, NULL));
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!json_is_integer(json_object_get(s->object, needed[i])))
            return gdn_fail(GDN_INPUT, "%s has no number %s", s->path, needed[i]);
    const json_t *context = json_object_get(s->object, "max_position_embeddings");
    s->context = (long)json_integer_value(context);
    return s->context > 0 ? GDN_OK
                          : settings_refuse(s, "max_position_embeddings", context, "a whole number above 0");
}

/* All keys, in any order. */
static int take_all(struct settings *s) {
    const char *name;
    json_t *value;
    TRY(find_family(s));
    TRY(fill_absent(s));
    fputs("model:\n", s->model);
    json_object_foreach(s->object, name, value) TRY(take(s, name, value));
    TRY(settings_take_rope(s));
    if (s->family->bias == BIAS_QKV) settings_add(s, "attention_bias: qkv");
    if (s->family->qk_norm) settings_add(s, "qk_norm: head");
    if (!json_object_get(s->object, "delta")) settings_add(s, "delta: {distances: []}");
    bool bytes = json_integer_value(json_object_get(s->object, "vocab_size")) == TEXT_SEPARATOR + 1;
    fprintf(s->model, "train: {sequence_length: %ld}\ndata: {format: %s}\n",
            s->context < SEQUENCE_LONGEST ? s->context : SEQUENCE_LONGEST, bytes ? "text" : "hdf5");
    return GDN_OK;
}

/* And then gdn's configuration of what they say. */
static int read_object(struct settings *s, struct config *config) {
    char *text = NULL, place[4352];
    size_t length;
    s->model = open_memstream(&text, &length);
    if (!s->model) return gdn_fail(GDN_INTERNAL, "out of memory for %s", s->path);
    int status = take_all(s);
    bool whole = !fclose(s->model);
    snprintf(place, sizeof place, "%s, as gdn's configuration", s->path);
    if (!status && !whole) status = gdn_fail(GDN_INTERNAL, "out of memory for %s", s->path);
    if (!status) status = config_parse(text, place, NULL, 0, config);
    free(text);
    return status;
}

int settings_parse(const char *text, size_t length, const char *path, struct config *config) {
    json_error_t error;
    struct settings s = {.path = path, .object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error)};
    char words[QUOTED];
    if (!s.object)
        return gdn_fail(GDN_INPUT, "%s is no JSON object, in line %d: %s", path, error.line,
                        quoted(error.text, words));
    int status = json_is_object(s.object) ? read_object(&s, config)
                                          : gdn_fail(GDN_INPUT, "%s is no JSON object", path);
    json_decref(s.object);
    return status;
}

int settings_read(const char *directory, struct config *config) {
    char *path, *text = malloc(LENGTH_LONGEST);
    if (asprintf(&path, "%s/config.json", directory) < 0) path = NULL;
    FILE *file = path ? fopen(path, "rb") : NULL;
    size_t length = file && text ? fread(text, 1, LENGTH_LONGEST, file) : 0;
    int status = !path || !text ? gdn_fail(GDN_INTERNAL, "out of memory for %s", directory)
                 : !length      ? gdn_fail(GDN_INPUT, "%s cannot be read", path)
                 : length == LENGTH_LONGEST
                     ? gdn_fail(GDN_INPUT, "%s is longer than the %d bytes that a configuration may have",
                                path, LENGTH_LONGEST - 1)
                     : settings_parse(text, length, path, config);
    if (file) fclose(file);
    free(path);
    free(text);
    return status;
}
