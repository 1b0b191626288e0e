#include "data/tokenizer/pre_tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/characters.h"
#include "kernels/base/status.h"

static int behavior_open(const struct place *place, const json_t *object, enum behavior *out) {
    static const char *const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious",
                                        "MergedWithNext"};
    const char *name;
    char words[QUOTED];
    size_t length;
    TRY(field_string(place, object, "behavior", &name, &length));
    for (int i = 0; i < 5; i++)
        if (!strcmp(name, names[i])) return *out = (enum behavior)i, GDN_OK;
    return place_fail(place,
                      "behavior '%s' is not supported; there are Isolated, Removed, Contiguous, "
                      "MergedWithPrevious and MergedWithNext",
                      quoted(name, words));
}

static int split_open(const struct place *place, const json_t *object, struct step *step) {
    TRY(pattern_open(place, object, "pattern", &step->pattern));
    TRY(behavior_open(place, object, &step->behavior));
    return field_bool(place, object, "invert", MUST, &step->invert);
}

static int split_run(const struct walk *walk, int i, struct passage piece) {
    const struct step *step = &walk->step[i];
    struct splitter splitter = {.walk = walk, .step = i + 1, .behavior = step->behavior, .all = piece};
    return splitter_search(&splitter, &step->pattern, walk->region, step->invert);
}

static int digits_open(const struct place *place, const json_t *object, struct step *step) {
    bool single;
    TRY(field_bool(place, object, "individual_digits", MUST, &single));
    step->behavior = single ? ISOLATED : CONTIGUOUS;
    return GDN_OK;
}

static int punctuation_open(const struct place *place, const json_t *object, struct step *step) {
    step->behavior = ISOLATED;
    return json_object_get(object, "behavior") ? behavior_open(place, object, &step->behavior) : GDN_OK;
}

static int whitespace_split_open(const struct place *place, const json_t *object, struct step *step) {
    (void)place, (void)object;
    step->behavior = REMOVED;
    return GDN_OK;
}

/* Splits at characters of a class. */
static int class_run(const struct walk *walk, int i, struct passage piece) {
    const struct step *step = &walk->step[i];
    struct splitter splitter = {.walk = walk, .step = i + 1, .behavior = step->behavior, .all = piece};
    size_t done = 0, size;
    for (size_t at = 0; at < piece.length; at += size) {
        if (!step->kind->is_match(character_at(piece.text + at, &size))) continue;
        if (done < at) TRY(splitter_add(&splitter, done, at, false));
        TRY(splitter_add(&splitter, at, done = at + size, true));
    }
    if (done < piece.length) TRY(splitter_add(&splitter, done, piece.length, false));
    return splitter_end(&splitter);
}

/* Runs of word characters, and runs of others that are no space. */
static int whitespace_run(const struct walk *walk, int i, struct passage piece) {
    enum { SPACE, WORD, OTHER } last = SPACE, now;
    size_t start = 0, size;
    for (size_t at = 0; at < piece.length; at += size, last = now) {
        int32_t c = character_at(piece.text + at, &size);
        now = character_is_space(c) ? SPACE : character_is_word(c) ? WORD : OTHER;
        if (now == last) continue;
        if (last != SPACE) TRY(walk_step(walk, i + 1, passage_part(piece, start, at)));
        start = at;
    }
    return last == SPACE ? GDN_OK : walk_step(walk, i + 1, passage_part(piece, start, piece.length));
}

const char byte_level_known[] = "type add_prefix_space trim_offsets use_regex";
const char metaspace_known[] = "type replacement add_prefix_space prepend_scheme split str_rep";

static const struct pre_tokenizer_kind kinds[] = {
    {.type = "ByteLevel", .known = byte_level_known, .open = byte_level_open, .run = byte_level_run},
    {.type = "Metaspace", .known = metaspace_known, .open = metaspace_open, .run = metaspace_run},
    {.type = "Split", .known = "type pattern behavior invert", .open = split_open, .run = split_run},
    {.type = "Digits",
     .known = "type individual_digits",
     .is_match = character_is_numeric,
     .open = digits_open,
     .run = class_run},
    {.type = "Punctuation",
     .known = "type behavior",
     .is_match = character_is_punctuation,
     .open = punctuation_open,
     .run = class_run},
    {.type = "Whitespace", .known = "type", .run = whitespace_run},
    {.type = "WhitespaceSplit",
     .known = "type",
     .is_match = character_is_space,
     .open = whitespace_split_open,
     .run = class_run},
};

struct list {
    struct step **steps;
    int *count;
};

static int take(const struct place *place, const json_t *object, void *input) {
    struct list *list = input;
    const void *kind;
    TRY(field_row(place, object, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds, &kind));
    struct step *steps = realloc(*list->steps, (size_t)(*list->count + 1) * sizeof *steps);
    if (!steps) return gdn_fail(GDN_INTERNAL, "no memory for a pre-tokenizer");
    *list->steps = steps;
    struct step *step = &steps[(*list->count)++];
    *step = (struct step){.kind = kind};
    TRY(fields_known(place, object, step->kind->known));
    return step->kind->open ? step->kind->open(place, object, step) : GDN_OK;
}

int steps_open(const struct place *place, const json_t *object, struct step **steps, int *count) {
    *steps = NULL;
    *count = 0;
    return fields_each(place, object, "pretokenizers", take, &(struct list){steps, count});
}

void steps_close(struct step *steps, int count) {
    for (int i = 0; i < count; i++) pattern_close(&steps[i].pattern);
    free(steps);
}
