#include "data/tokenizer/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/characters.h"
#include "kernels/base/append.h"
#include "kernels/base/status.h"

struct place place_inside(const struct place *place, const char *member, long index) {
    struct place inner = {.path = place->path};
    size_t used = text_append(inner.where, sizeof inner.where, 0, "%s%s%s", place->where,
                              *place->where ? "." : "", member);
    if (index >= 0) text_append(inner.where, sizeof inner.where, used, "[%ld]", index);
    return inner;
}

int place_fail(const struct place *place, const char *format, ...) {
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return gdn_fail(GDN_INPUT, "%s: %s%s%s", place->path, place->where, *place->where ? ": " : "", words);
}

const char *quoted(const char *text, char out[QUOTED]) {
    size_t n = 0;
    for (; text[n] && n < QUOTED - 4; n++)
        out[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
    if (text[n]) {
        while (n && ((unsigned char)text[n] & 0xc0) == 0x80) n--; /* not inside a character */
        memcpy(out + n, "...", 3), n += 3;
    }
    out[n] = 0;
    return out;
}

static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; length && (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}

int fields_known(const struct place *place, const json_t *object, const char *known) {
    const char *name;
    json_t *value;
    if (!json_is_object(object)) return place_fail(place, "an object is expected");
    json_object_foreach((json_t *)object, name, value) {
        char words[QUOTED];
        if (!has_word(known, name))
            return place_fail(place, "'%s' is not supported; of these members there may be: %s",
                              quoted(name, words), known);
    }
    return GDN_OK;
}

static int wrong(const struct place *place, const char *name, const char *expected) {
    return place_fail(place, "'%s' is missing or of another type; %s is expected", name, expected);
}

int field_string(const struct place *place, const json_t *object, const char *name, const char **out,
                 size_t *length) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value)) return wrong(place, name, "a text");
    *out = json_string_value(value);
    *length = json_string_length(value);
    return GDN_OK;
}

int field_integer(const struct place *place, const json_t *object, const char *name, long min, long max,
                  long *out) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value)) return wrong(place, name, "a whole number");
    *out = json_integer_value(value);
    if (*out < min || *out > max)
        return place_fail(place, "'%s' is %ld, and %ld to %ld is expected", name, *out, min, max);
    return GDN_OK;
}

int field_array(const struct place *place, const json_t *object, const char *name, const json_t **out) {
    *out = json_object_get(object, name);
    return json_is_array(*out) ? GDN_OK : wrong(place, name, "a list");
}

int field_character(const struct place *place, const json_t *object, const char *name, int32_t *out) {
    const char *text;
    size_t length, size = 0;
    TRY(field_string(place, object, name, &text, &length));
    if (length) *out = character_at(text, &size);
    return length && size == length ? GDN_OK : wrong(place, name, "one character");
}

int field_bool(const struct place *place, const json_t *object, const char *name, int missing, bool *out) {
    const json_t *value = json_object_get(object, name);
    if (!value && missing != MUST) return *out = missing, GDN_OK;
    if (!json_is_boolean(value)) return wrong(place, name, "true or false");
    *out = json_is_true(value);
    return GDN_OK;
}

int field_row(const struct place *place, const json_t *object, const void *rows, size_t size, size_t count,
              const void **out) {
    const char *name;
    size_t length, used = 0;
    TRY(field_string(place, object, "type", &name, &length));
    char list[300], words[QUOTED];
    for (size_t i = 0; i < count; i++) {
        const char *row = *(const char *const *)((const char *)rows + i * size);
        if (!strcmp(row, name)) return *out = (const char *)rows + i * size, GDN_OK;
        used = text_append(list, sizeof list, used, "%s%s", i ? ", " : "", row);
    }
    return place_fail(place, "type '%s' is not supported; there are %s and, of several, Sequence",
                      quoted(name, words), list);
}

int fields_each(const struct place *place, const json_t *object, const char *list,
                int (*take)(const struct place *, const json_t *, void *), void *input) {
    if (!object || json_is_null(object)) return GDN_OK;
    const char *type = json_string_value(json_object_get(object, "type"));
    if (!type || strcmp(type, "Sequence")) return take(place, object, input);
    const json_t *elements;
    char known[40];
    snprintf(known, sizeof known, "type %s", list);
    TRY(fields_known(place, object, known));
    TRY(field_array(place, object, list, &elements));
    for (size_t i = 0; i < json_array_size(elements); i++) {
        struct place inner = place_inside(place, list, (long)i);
        TRY(fields_each(&inner, json_array_get(elements, i), list, take, input));
    }
    return GDN_OK;
}
