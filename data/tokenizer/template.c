#include "data/tokenizer/template.h"

#include <string.h>

#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/vocabulary.h"
#include "kernels/base/status.h"

/* The ids that `special_tokens` lists under a name. */
static int add_special(const struct place *place, const json_t *specials, const json_t *piece,
                       struct ids *out) {
    const char *name;
    char words[QUOTED];
    size_t length;
    const json_t *ids;
    TRY(field_string(place, piece, "id", &name, &length));
    const json_t *special = json_object_get(specials, name);
    if (!special) return place_fail(place, "'%s' is not among special_tokens", quoted(name, words));
    TRY(fields_known(place, special, "id ids tokens"));
    TRY(field_array(place, special, "ids", &ids));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *value = json_array_get(ids, i);
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id > MAX_ID)
            return place_fail(place, "'%s' has no ids from 0 to %d", quoted(name, words), MAX_ID);
        TRY(ids_add(out, &(int32_t){(int32_t)id}, 1));
    }
    return GDN_OK;
}

static int read_single(const struct place *place, const json_t *object, struct template *template) {
    const json_t *pieces;
    bool seen = false;
    TRY(field_array(place, object, "single", &pieces));
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        struct place inner = place_inside(place, "single", (long)i);
        const json_t *piece = json_array_get(pieces, i);
        const json_t *special = json_object_get(piece, "SpecialToken"),
                     *text = json_object_get(piece, "Sequence");
        TRY(fields_known(&inner, piece, "SpecialToken Sequence"));
        if (special) {
            TRY(add_special(&inner, json_object_get(object, "special_tokens"), special,
                            seen ? &template->after : &template->before));
            continue;
        }
        const char *id = json_string_value(json_object_get(text, "id"));
        if (!id || strcmp(id, "A") || seen)
            return place_fail(&inner, "one sequence A is expected, and no other");
        seen = true;
    }
    return seen ? GDN_OK : place_fail(place, "'single' has no sequence A");
}

static int take(const struct place *place, const json_t *object, void *input) {
    static const struct {
        const char *type, *known;
    } kinds[] = {{"TemplateProcessing", "type single pair special_tokens"}, {"ByteLevel", byte_level_known}};
    struct template *template = input;
    const void *kind;
    TRY(field_row(place, object, kinds, sizeof *kinds, 2, &kind));
    bool byte_level = kind == &kinds[1]; /* it changes offsets, not tokens */
    TRY(fields_known(place, object, kinds[byte_level].known));
    if (byte_level) return GDN_OK;
    if (template->given) return place_fail(place, "there is a template before this one, and one is expected");
    template->given = true;
    return read_single(place, object, template);
}

int template_open(const struct place *place, const json_t *object, struct template *out) {
    *out = (struct template){0};
    return fields_each(place, object, "processors", take, out);
}

void template_close(struct template *template) {
    ids_free(&template->before);
    ids_free(&template->after);
}
