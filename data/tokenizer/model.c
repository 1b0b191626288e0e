#include "data/tokenizer/model.h"

#include <stdio.h>
#include <string.h>

#include "data/tokenizer/characters.h"

static int read_vocabulary(const struct place *place, const json_t *object, struct model *model) {
    struct place inner = place_inside(place, "vocab", -1);
    json_t *names = json_object_get(object, "vocab"), *value;
    const char *name;
    char words[QUOTED];
    if (!json_object_size(names))
        return place_fail(&inner, "is no object, or empty; tokens with their ids are expected");
    json_object_foreach(names, name, value) {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        size_t length;
        if (id < 0 || id > MAX_ID)
            return place_fail(&inner, "'%s' has no id from 0 to %d", quoted(name, words), MAX_ID);
        if (vocabulary_name(&model->vocabulary, (int32_t)id, &length))
            return place_fail(&inner, "'%s' has id %d, which another token has", quoted(name, words),
                              (int)id);
        TRY(vocabulary_add(&model->vocabulary, name, strlen(name), (int32_t)id));
    }
    return GDN_OK;
}

static void find_characters(struct model *model) {
    const struct vocabulary *v = &model->vocabulary;
    for (int32_t c = 0; c < CHARACTER_MAX; c++) model->of_character[c] = -1;
    for (int32_t id = 0; id < v->end; id++) {
        size_t length, size;
        const char *name = vocabulary_name(v, id, &length);
        if (!name || !length) continue;
        int32_t c = character_at(name, &size);
        if (size == length) model->of_character[c] = id;
    }
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        model->of_byte[byte] = model->byte_fallback ? vocabulary_find(v, name, 6) : -1;
    }
}

/* Both halves of a merge: "a b", or ["a", "b"]. */
static int split_merge(const struct place *place, const json_t *merge, const char *half[2],
                       size_t length[2]) {
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge), *blank = strchr(text, ' ');
        if (!blank || strchr(blank + 1, ' '))
            return place_fail(place, "two tokens with a blank between them are expected");
        half[0] = text, length[0] = (size_t)(blank - text);
        half[1] = blank + 1, length[1] = strlen(blank + 1);
        return GDN_OK;
    }
    for (size_t i = 0; i < 2; i++) {
        const json_t *token = json_array_get(merge, i);
        if (!json_is_string(token) || json_array_size(merge) != 2)
            return place_fail(place, "two tokens are expected");
        half[i] = json_string_value(token), length[i] = json_string_length(token);
    }
    return GDN_OK;
}

static int no_token(const struct place *place, const char *name, size_t length) {
    char copy[QUOTED + 4], words[QUOTED];
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    return place_fail(place, "the vocabulary has no '%s'", quoted(copy, words));
}

static int read_merge(const struct place *place, const json_t *value, int32_t rank, struct text *whole,
                      struct model *model) {
    const char *half[2];
    size_t length[2], size;
    int32_t id[3];
    TRY(split_merge(place, value, half, length));
    whole->length = 0;
    for (int i = 0; i < 2; i++) {
        if (!length[i]) return place_fail(place, "a token without a character cannot be merged");
        id[i] = vocabulary_find(&model->vocabulary, half[i], length[i]);
        if (id[i] < 0) return no_token(place, half[i], length[i]);
        TRY(text_add(whole, half[i], length[i]));
    }
    id[2] = vocabulary_find(&model->vocabulary, whole->bytes, whole->length);
    if (id[2] < 0) return no_token(place, whole->bytes, whole->length);
    *pairs_at(&model->merges, id[0], id[1]) = (struct pair){id[0], id[1], rank, id[2]};
    int32_t last = character_at(character_before(half[0], half[0] + length[0]), &size);
    int32_t first = character_at(half[1], &size);
    *pairs_at(&model->borders, last, first) = (struct pair){.left = last, .right = first};
    return GDN_OK;
}

static int read_merges(const struct place *place, const json_t *object, struct model *model) {
    const json_t *merges;
    struct text whole = {0};
    TRY(field_array(place, object, "merges", &merges));
    size_t count = json_array_size(merges);
    TRY(pairs_create(&model->merges, count));
    TRY(pairs_create(&model->borders, count));
    int status = GDN_OK, rank = 0;
    for (size_t i = 0; i < count && !status; i++) {
        struct place inner = place_inside(place, "merges", (long)i);
        const json_t *merge = json_array_get(merges, i);
        const char *text =
            json_string_value(merge); /* a line of an old file of merges, which said what it is */
        if (text && !strncmp(text, "#version", 8)) continue;
        if (json_typeof(merge) != json_typeof(json_array_get(merges, 0)))
            status = place_fail(&inner, "is written in another way than the first");
        else
            status = read_merge(&inner, merge, rank++, &whole, model);
    }
    text_free(&whole);
    return status;
}

/* What would change how words are merged must not be there. An empty affix changes nothing: GPT-2's own file
 * has them. */
static int refuse_others(const struct place *place, const json_t *object) {
    static const char *const names[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = json_string_value(json_object_get(object, "type"));
    char words[QUOTED];
    if (json_object_get(object, "type") && (!type || strcmp(type, "BPE")))
        return place_fail(place, "type '%s' is not supported; there is BPE", quoted(type ? type : "", words));
    for (int i = 0; i < 3; i++) {
        const json_t *value = json_object_get(object, names[i]);
        bool empty = i && json_is_string(value) && !json_string_length(value);
        if (value && !json_is_null(value) && !empty)
            return place_fail(place, "'%s' is not supported; null is expected", names[i]);
    }
    return GDN_OK;
}

int model_open(const struct place *place, const json_t *object, struct model *model) {
    const char *name;
    size_t length;
    *model = (struct model){.unknown = -1};
    TRY(fields_known(
        place, object,
        "type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback "
        "ignore_merges vocab merges"));
    TRY(refuse_others(place, object));
    TRY(field_bool(place, object, "fuse_unk", false, &model->fuse_unk));
    TRY(field_bool(place, object, "byte_fallback", false, &model->byte_fallback));
    TRY(field_bool(place, object, "ignore_merges", false, &model->ignore_merges));
    TRY(read_vocabulary(place, object, model));
    const json_t *unknown = json_object_get(object, "unk_token");
    if (unknown && !json_is_null(unknown)) {
        TRY(field_string(place, object, "unk_token", &name, &length));
        model->unknown = vocabulary_find(&model->vocabulary, name, length);
        if (model->unknown < 0) return no_token(place, name, length);
    }
    TRY(read_merges(place, object, model));
    model->of_character = malloc(CHARACTER_MAX * sizeof *model->of_character);
    if (!model->of_character) return gdn_fail(GDN_INTERNAL, "no memory for a table of characters");
    find_characters(model);
    return GDN_OK;
}

void model_close(struct model *model) {
    vocabulary_free(&model->vocabulary);
    free(model->merges.pair);
    free(model->borders.pair);
    free(model->of_character);
    *model = (struct model){0};
}
