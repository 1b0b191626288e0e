/* tokenizer.json of Hugging Face's library, with a byte-pair model. A text's way: added tokens that are not
 * normalized are found in it; between them it is normalized; the other added tokens are found; what is left
 * is split into words, and these become tokens. What the file has is all understood, or it is refused. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "data/mapping.h"
#include "data/tokenizer/added.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/template.h"
#include "kernels/base/status.h"

struct huggingface {
    struct normalizers normalizers;
    struct step *steps; /* [num_steps] pre-tokenizers */
    int num_steps;
    struct model model;
    struct added added;
    struct decoders decoders;
    struct template template;
};

/* A thread's own. */
struct writer {
    const struct huggingface *h;
    struct merger *merger;
    struct text normalized[2], repaired;
    struct walk walk;
    struct ids *out;
};

static bool is_named(const char *name) {
    (void)name;
    return true;
}

static int refuse_member(const struct place *place, const json_t *object, const char *name, const char *why) {
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value)) return GDN_OK;
    return place_fail(place, "'%s' is not supported: %s; null is expected", name, why);
}

static int open_members(const struct place *place, const json_t *object, struct tokenizer *tokenizer) {
    struct huggingface *h = tokenizer->state;
    struct place part;
    const char *version = json_string_value(json_object_get(object, "version"));
    TRY(fields_known(
        place, object,
        "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model"));
    if (version && strcmp(version, "1.0")) return place_fail(place, "its version is not 1.0");
    TRY(refuse_member(place, object, "truncation", "it would cut texts"));
    TRY(refuse_member(place, object, "padding", "it would lengthen texts"));
    part = place_inside(place, "model", -1);
    TRY(model_open(&part, json_object_get(object, "model"), &h->model));
    part = place_inside(place, "normalizer", -1);
    TRY(normalizers_open(&part, json_object_get(object, "normalizer"), &h->normalizers));
    part = place_inside(place, "pre_tokenizer", -1);
    TRY(steps_open(&part, json_object_get(object, "pre_tokenizer"), &h->steps, &h->num_steps));
    TRY(added_open(place, object, &h->model, &h->normalizers, &h->added));
    part = place_inside(place, "post_processor", -1);
    TRY(template_open(&part, json_object_get(object, "post_processor"), &h->template));
    part = place_inside(place, "decoder", -1);
    TRY(decoders_open(&part, json_object_get(object, "decoder"), &h->decoders));
    long model_end = h->model.vocabulary.end, added_end = h->added.given.end;
    tokenizer->vocab = model_end > added_end ? model_end : added_end;
    return GDN_OK;
}

static int open_text(struct tokenizer *tokenizer, const char *text, size_t size) {
    json_error_t error;
    char words[QUOTED];
    tokenizer->hash = XXH3_64bits(text, size);
    json_t *object = json_loadb(text, size, JSON_ALLOW_NUL, &error);
    if (!object)
        return gdn_fail(GDN_INPUT, "%s is no JSON of a tokenizer: line %d: %s", tokenizer->path, error.line,
                        quoted(error.text, words));
    int status = open_members(&(struct place){.path = tokenizer->path}, object, tokenizer);
    json_decref(object);
    return status;
}

static int open_file(struct tokenizer *tokenizer) {
    struct mapping file;
    if (!(tokenizer->state = calloc(1, sizeof(struct huggingface))))
        return gdn_fail(GDN_INTERNAL, "%s: no memory", tokenizer->path);
    if (tokenizer->text) return open_text(tokenizer, tokenizer->text, strlen(tokenizer->text));
    TRY(mapping_open(tokenizer->path, &file));
    int status = open_text(tokenizer, (const char *)file.bytes, file.size);
    mapping_close(&file);
    return status;
}

static void close_file(struct tokenizer *tokenizer) {
    struct huggingface *h = tokenizer->state;
    if (!h) return;
    normalizers_close(&h->normalizers);
    steps_close(h->steps, h->num_steps);
    model_close(&h->model);
    added_close(&h->added);
    decoders_close(&h->decoders);
    template_close(&h->template);
    free(h);
}

static int32_t find_id(const struct tokenizer *tokenizer, const char *name, size_t length) {
    const struct huggingface *h = tokenizer->state;
    int32_t id = vocabulary_find(&h->added.given, name, length);
    return id >= 0 ? id : vocabulary_find(&h->model.vocabulary, name, length);
}

static const char *find_name(const struct tokenizer *tokenizer, int32_t id, size_t *length) {
    const struct huggingface *h = tokenizer->state;
    const char *name = vocabulary_name(&h->added.decoded, id, length);
    return name ? name : vocabulary_name(&h->model.vocabulary, id, length);
}

static bool is_special(const struct tokenizer *tokenizer, int32_t id) {
    const struct huggingface *h = tokenizer->state;
    const struct added_token *token = added_find(&h->added, id);
    return token && token->special;
}

static int take_word(void *input, const char *word, size_t length) {
    struct writer *writer = input;
    return merger_encode(writer->merger, word, length, writer->out);
}

static void free_writer(struct encoder *encoder) {
    struct writer *writer = encoder->state;
    if (!writer) return;
    for (int i = 0; writer->walk.buffer && i < writer->walk.count; i++) text_free(&writer->walk.buffer[i]);
    free(writer->walk.buffer);
    if (writer->walk.region) onig_region_free(writer->walk.region, 1);
    text_free(&writer->normalized[0]);
    text_free(&writer->normalized[1]);
    text_free(&writer->repaired);
    merger_free(writer->merger);
    free(writer);
}

static int create_writer(struct encoder *encoder) {
    const struct huggingface *h = encoder->tokenizer->state;
    struct writer *writer = encoder->state = calloc(1, sizeof *writer);
    if (!writer) return gdn_fail(GDN_INTERNAL, "%s: no memory", encoder->tokenizer->path);
    writer->h = h;
    writer->walk = (struct walk){.step = h->steps,
                                 .count = h->num_steps,
                                 .buffer = calloc((size_t)h->num_steps + 1, sizeof *writer->walk.buffer),
                                 .region = onig_region_new(),
                                 .take = take_word,
                                 .input = writer};
    if (!writer->walk.buffer || !writer->walk.region)
        return gdn_fail(GDN_INTERNAL, "%s: no memory", encoder->tokenizer->path);
    return merger_create(&h->model, &writer->merger);
}

/* Of the normalized text. */
static int take_part(void *input, int32_t id, struct passage part) {
    struct writer *writer = input;
    return id >= 0 ? ids_add(writer->out, &id, 1) : walk_step(&writer->walk, 0, part);
}

/* Of the text as it is given. */
static int take_given(void *input, int32_t id, struct passage part) {
    struct writer *writer = input;
    const struct huggingface *h = writer->h;
    if (id >= 0) return ids_add(writer->out, &id, 1);
    TRY(normalizers_run(&h->normalizers, writer->walk.region, part, writer->normalized, &part));
    return added_split(&h->added, &h->added.normalized, part, take_part, writer);
}

static int encode(struct encoder *encoder, const char *text, size_t length, bool special, struct ids *out) {
    struct writer *writer = encoder->state;
    const struct huggingface *h = writer->h;
    size_t size;
    if (characters_valid(text, length) < length) {
        writer->repaired.length = 0;
        TRY(characters_repair(text, length, &writer->repaired));
        text = writer->repaired.bytes;
        length = writer->repaired.length;
    }
    writer->out = out;
    struct passage all = {text, length, 0};
    if (length) character_at(text, &size), all.head = size;
    if (special) TRY(ids_add(out, h->template.before.id, h->template.before.count));
    TRY(added_split(&h->added, &h->added.plain, all, take_given, writer));
    return special ? ids_add(out, h->template.after.id, h->template.after.count) : GDN_OK;
}

static int decode(const struct tokenizer *tokenizer, const int32_t *id, long count, bool skip_special,
                  bool raw, struct text *out) {
    const struct huggingface *h = tokenizer->state;
    struct texts names = {.count = 0};
    int status = GDN_OK;
    for (long i = 0; i < count && !status; i++) {
        size_t length;
        const char *name = find_name(tokenizer, id[i], &length);
        if (!name || (skip_special && is_special(tokenizer, id[i]))) continue;
        status = texts_add(&names, name, length);
    }
    if (!status) status = decoders_run(&h->decoders, raw, &names, out);
    texts_free(&names);
    return status;
}

const struct tokenizer_kind huggingface_tokenizer = {
    .name = "tokenizer.json",
    .is_named = is_named,
    .open = open_file,
    .close = close_file,
    .id = find_id,
    .token_name = find_name,
    .is_special = is_special,
    .encoder_create = create_writer,
    .encoder_free = free_writer,
    .encode = encode,
    .decode = decode,
};
