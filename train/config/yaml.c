#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "kernels/base/utf8.h"

/* How many bytes the character at `at` has, 0 where it is no UTF-8 or a control character. */
static size_t character_bytes(const char *at, size_t left) {
    unsigned char c = (unsigned char)at[0];
    if (c < 0x80) return (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
    return utf8_bytes(at, left);
}

/* The position of the first byte that is no text, `length` where there is none. libfyaml would read such text
 * as an empty value without a word, so it is refused beforehand. */
static size_t first_bad_byte(const char *text, size_t length) {
    size_t i = 0, bytes = 0;
    while (i < length && (bytes = character_bytes(text + i, length - i))) i += bytes;
    return i;
}

static int syntax_error(const struct yaml *yaml, const struct place *place) {
    void *iterator = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(yaml->diag, &iterator);
    if (!error) return fail_at(place, "is not YAML");
    char message[SHOWN];
    struct place at = *place;
    at.line = place->file ? error->line : 0; /* an override's value is one line as a rule */
    return fail_at(&at, "is not YAML at column %d: %s", error->column, shown(error->msg, message));
}

int yaml_open(const char *text, size_t length, const struct place *place, struct yaml *out) {
    *out = (struct yaml){0};
    size_t bad = first_bad_byte(text, length);
    if (bad < length) {
        struct place at = *place;
        at.line = place->file != NULL;
        for (size_t i = 0; i < bad; i++) at.line += place->file && text[i] == '\n';
        return fail_at(&at, "byte 0x%02x is not text; UTF-8 without control characters is expected",
                       (unsigned char)text[bad]);
    }
    struct fy_diag_cfg diag;
    fy_diag_cfg_default(&diag);
    diag.fp = NULL; /* libfyaml prints nothing itself */
    out->diag = fy_diag_create(&diag);
    if (!out->diag) return gdn_fail(GDN_INTERNAL, "out of memory for reading YAML");
    fy_diag_set_collect_errors(out->diag, true);
    /* Duplicate keys are found while reading, where both lines are known. */
    struct fy_parse_cfg parse = {.flags = FYPCF_QUIET | FYPCF_JSON_NONE | FYPCF_ALLOW_DUPLICATE_KEYS,
                                 .diag = out->diag};
    out->parser = fy_parser_create(&parse);
    if (!out->parser || fy_parser_set_string(out->parser, text, length))
        return gdn_fail(GDN_INTERNAL, "out of memory for reading YAML");
    out->document = fy_parse_load_document(out->parser);
    if (!out->document) return fy_diag_got_error(out->diag) ? syntax_error(out, place) : GDN_OK;
    struct fy_document *second = fy_parse_load_document(out->parser);
    if (second) {
        fy_parse_document_destroy(out->parser, second);
        return fail_at(place, "holds several YAML documents (separated by ---); one is expected");
    }
    return fy_diag_got_error(out->diag) ? syntax_error(out, place) : GDN_OK;
}

void yaml_close(struct yaml *yaml) {
    if (yaml->document) fy_parse_document_destroy(yaml->parser, yaml->document);
    if (yaml->parser) fy_parser_destroy(yaml->parser);
    if (yaml->diag) fy_diag_destroy(yaml->diag);
    *yaml = (struct yaml){0};
}

int yaml_resolve(struct fy_node *node, const struct place *place, const char *label, struct fy_node **out) {
    char text[SHOWN];
    *out = node;
    if (node && fy_node_is_alias(node) && !(*out = fy_node_resolve_alias(node)))
        return fail_at(place,
                       "%s is %s, to YAML the alias of an anchor that is not there; put text that begins "
                       "with * into quotes",
                       label, yaml_shown(node, text));
    if (*out && fy_node_get_tag_token(*out))
        return fail_at(place, "%s is %s: YAML tags are not accepted; put text that begins with ! into quotes",
                       label, yaml_shown(node, text));
    return GDN_OK;
}

struct fy_node *yaml_root(const struct yaml *yaml) {
    return yaml->document ? fy_document_root(yaml->document) : NULL;
}

int yaml_line(struct fy_node *node, int otherwise) {
    if (!node) return otherwise;
    if (fy_node_is_sequence(node)) return yaml_line(fy_node_sequence_get_by_index(node, 0), otherwise);
    if (fy_node_is_mapping(node)) {
        struct fy_node_pair *first = fy_node_mapping_get_by_index(node, 0);
        return first ? yaml_line(fy_node_pair_key(first), otherwise) : otherwise;
    }
    struct fy_token *token = fy_node_get_scalar_token(node);
    const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
    return mark ? mark->line + 1 : otherwise;
}

const char *yaml_shown(struct fy_node *node, char *out) {
    if (!node || (fy_node_is_null(node) && !fy_node_get_scalar_token(node))) return strcpy(out, "empty");
    enum fy_emitter_cfg_flags flags = FYECF_MODE_FLOW_ONELINE | FYECF_WIDTH_INF | FYECF_DOC_START_MARK_OFF |
                                      FYECF_DOC_END_MARK_OFF | FYECF_NO_ENDING_NEWLINE;
    char *text = fy_emit_node_to_string(node, flags);
    char line[SHOWN];
    snprintf(out, SHOWN, "'%.*s'", SHOWN - 8, shown(text ? text : "?", line));
    free(text);
    return out;
}

int yaml_key(struct fy_node *mapping, struct fy_node_pair *pair, const struct place *place,
             const char *section, char **out) {
    char text[SHOWN];
    struct fy_node *key = fy_node_pair_key(pair);
    struct place at = *place;
    if (place->file) at.line = yaml_line(key, place->line);
    const char *inside = *section ? section : "the configuration";
    size_t length = 0;
    const char *name =
        key && fy_node_is_scalar(key) && !fy_node_is_alias(key) ? fy_node_get_scalar(key, &length) : NULL;
    if (!name || memchr(name, 0, length) || fy_node_get_tag_token(key))
        return fail_at(&at, "a key of %s is %s: a name is expected", inside, yaml_shown(key, text));
    *out = strndup(name, length);
    if (!*out) return gdn_fail(GDN_INTERNAL, "out of memory for reading YAML");
    /* Quadratic, over at most a few dozen keys. */
    void *iterator = NULL;
    struct fy_node_pair *earlier;
    while ((earlier = fy_node_mapping_iterate(mapping, &iterator)) != pair) {
        struct fy_node *other = fy_node_pair_key(earlier);
        const char *same = other && fy_node_is_scalar(other) ? fy_node_get_scalar0(other) : NULL;
        if (!same || strcmp(same, *out)) continue;
        char first[32] = "";
        if (place->file) snprintf(first, sizeof first, ", first in line %d", yaml_line(other, place->line));
        return fail_at(&at, "%s%s%s is given twice%s: once is expected", section, *section ? "." : "",
                       shown(*out, text), first);
    }
    return GDN_OK;
}
