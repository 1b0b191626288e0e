/* Rotary positions, in both spellings: `rope_theta` beside `rope_scaling`, and `rope_parameters`, which has
 * both. */
#include "train/huggingface/settings.h"

#include <stdio.h>
#include <string.h>

#include "kernels/base/append.h"
#include "kernels/base/status.h"

#define THETA 10000.0 /* where nothing is said */

/* Numbers of a scaling, whose names gdn has taken over. */
static const char *const numbers[] = {"factor", "low_freq_factor", "high_freq_factor",
                                      "original_max_position_embeddings"};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* A rope_type, and how many of the numbers it needs; gdn's model.rope_scaling.kind has the same words. */
static const struct kind {
    const char *name;
    int numbers;
} kinds[] = {{"default", 0}, {"linear", 1}, {"llama3", NUMBERS}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What one object says, and what is said beside it. */
struct rope {
    const json_t *theta;
    const struct kind *kind;
    bool said; /* the kind */
    const json_t *number[NUMBERS];
};

/* By the one key or the other; null says nothing, and two that differ cannot both be right. */
static int take_kind(const struct settings *s, const char *key, const json_t *value, struct rope *out) {
    const char *word = json_string_value(value);
    int i = 0;
    if (json_is_null(value)) return GDN_OK;
    while (i < KINDS && (!word || strcmp(kinds[i].name, word))) i++;
    if (i == KINDS) return settings_refuse(s, key, value, "\"default\", \"linear\" or \"llama3\"");
    if (out->said && out->kind != &kinds[i])
        return settings_refuse(s, key, value, strcmp(key, "type") ? "what type says" : "what rope_type says");
    out->said = true;
    return out->kind = &kinds[i], GDN_OK;
}

static int take_key(const struct settings *s, const char *name, const char *key, const json_t *value,
                    struct rope *out) {
    if (!strcmp(key, "rope_theta")) return out->theta = value, GDN_OK;
    if (!strcmp(key, "rope_type") || !strcmp(key, "type")) return take_kind(s, key, value, out);
    if (!strcmp(key, "partial_rotary_factor"))
        return json_number_value(value) == 1 ? GDN_OK : settings_refuse(s, key, value, "1.0");
    for (int i = 0; i < NUMBERS; i++)
        if (!strcmp(key, numbers[i]) && json_is_number(value)) return out->number[i] = value, GDN_OK;
    json_t *unknown = json_string(key);
    int status = settings_refuse(s, name, unknown, "rope_theta, rope_type and the numbers of this");
    json_decref(unknown);
    return status;
}

static int take_object(const struct settings *s, const char *name, json_t *object, struct rope *out) {
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return settings_refuse(s, name, object, "an object or null");
    json_object_foreach(object, key, value) TRY(take_key(s, name, key, value, out));
    for (int i = 0; i < out->kind->numbers; i++)
        if (!out->number[i])
            return gdn_fail(GDN_INPUT, "%s: %s has no number %s, which its rope_type %s needs", s->path, name,
                            numbers[i], out->kind->name);
    return GDN_OK;
}

static bool same(const struct rope *a, const struct rope *b) {
    bool equal = a->kind == b->kind;
    for (int i = 0; i < a->kind->numbers && equal; i++)
        equal = json_number_value(a->number[i]) == json_number_value(b->number[i]);
    return equal;
}

static void add(struct settings *s, const struct rope *rope) {
    char text[256];
    size_t used = 0;
    if (!rope->kind->numbers) return;
    for (int i = 0; i < rope->kind->numbers; i++)
        used = text_append(text, sizeof text, used,
                           json_is_integer(rope->number[i]) ? ", %s: %.0f" : ", %s: %.17g", numbers[i],
                           json_number_value(rope->number[i]));
    settings_add(s, "rope_scaling: {kind: %s%s}", rope->kind->name, text);
}

int settings_take_rope(struct settings *s) {
    static const char *const names[] = {"rope_scaling", "rope_parameters"};
    const json_t *plain = json_object_get(s->object, "rope_theta"), *theta = plain;
    struct rope said[2];
    int count = 0;
    for (int i = 0; i < 2; i++) {
        json_t *object = json_object_get(s->object, names[i]);
        if (!object || json_is_null(object)) continue;
        said[count] = (struct rope){.kind = kinds};
        TRY(take_object(s, names[i], object, &said[count]));
        if (said[count].theta) theta = said[count].theta;
        count++;
    }
    if (plain && json_number_value(plain) != json_number_value(theta))
        return settings_refuse(s, "rope_theta", plain, "what rope_parameters says");
    if (count == 2 && !same(&said[0], &said[1]))
        return settings_refuse(s, names[0], json_object_get(s->object, names[0]),
                               "what rope_parameters says");
    if (theta && !json_is_number(theta)) return settings_refuse(s, "rope_theta", theta, "a number");
    settings_add(s, "rope_theta: %.17g", theta ? json_number_value(theta) : THETA);
    if (count) add(s, &said[count - 1]);
    return GDN_OK;
}
