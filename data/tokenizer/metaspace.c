/* Blanks as a visible character, which words begin with. */
#include <string.h>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "kernels/base/status.h"

int metaspace_open(const struct place *place, const json_t *object, struct step *step) {
    const char *scheme = "always";
    char words[QUOTED];
    int32_t replacement;
    size_t length;
    bool prefix;
    TRY(field_character(place, object, "replacement", &replacement));
    step->replacement_length = character_put(replacement, step->replacement);
    if (json_object_get(object, "prepend_scheme"))
        TRY(field_string(place, object, "prepend_scheme", &scheme, &length));
    TRY(field_bool(place, object, "split", true, &step->split));
    TRY(field_bool(place, object, "add_prefix_space", true, &prefix));
    step->prepend = !strcmp(scheme, "always")  ? PREPEND_ALWAYS
                    : !strcmp(scheme, "first") ? PREPEND_FIRST
                                               : PREPEND_NEVER;
    if (step->prepend == PREPEND_NEVER && strcmp(scheme, "never"))
        return place_fail(place, "prepend_scheme '%s' is not supported; there are always, first and never",
                          quoted(scheme, words));
    if (!prefix && step->prepend != PREPEND_NEVER)
        return place_fail(place, "add_prefix_space and prepend_scheme contradict each other");
    return GDN_OK;
}

int metaspace_run(const struct walk *walk, int i, struct passage piece) {
    const struct step *step = &walk->step[i];
    const char *mark = step->replacement;
    size_t n = step->replacement_length, head = piece.head;
    struct text *out = &walk->buffer[i];
    out->length = 0;
    bool marked = piece.text[0] == ' ' || (piece.length >= n && !memcmp(piece.text, mark, n));
    if (!marked && (step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && head))) {
        TRY(text_add(out, mark, n));
        if (head) head += n;
    }
    for (size_t at = 0; at < piece.length;) {
        const char *blank = memchr(piece.text + at, ' ', piece.length - at);
        size_t end = blank ? (size_t)(blank - piece.text) : piece.length;
        TRY(text_add(out, piece.text + at, end - at));
        if (blank) TRY(text_add(out, mark, n));
        if (blank && end < piece.head) head += n - 1;
        at = end + (blank != NULL);
    }
    struct passage all = {out->bytes, out->length, head};
    if (!step->split) return walk_step(walk, i + 1, all);
    struct splitter splitter = {.walk = walk, .step = i + 1, .behavior = MERGED_WITH_NEXT, .all = all};
    struct pattern pattern = {.text = (char *)mark, .length = n};
    return splitter_search(&splitter, &pattern, NULL, false);
}
