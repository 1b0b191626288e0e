/* The keys whose value is a list or a mapping: model.delta.distances, data.sources and data.validations, and
 * what others share whose entries have files of their own. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

struct place place_of(struct fy_node *node, const struct place *list) {
    struct place place = *list;
    if (list->file) place.line = yaml_line(node, list->line);
    return place;
}

static int *count_of(void *base, const struct key *key) {
    return (int *)((char *)base + key->count_offset);
}

int list_read_ints(void *base, const struct key *key, const char *label, struct fy_node *list,
                   const struct place *place) {
    struct key entry = {.type = KEY_INT, .min = key->min, .max = key->max};
    int *values = (int *)((char *)base + key->offset), count = 0, length = fy_node_sequence_item_count(list);
    if (length > MAX_DISTANCES)
        return fail_at(place, "%s has %d entries: at most %d are allowed", label, length, MAX_DISTANCES);
    void *iterator = NULL;
    for (struct fy_node *node; (node = fy_node_sequence_iterate(list, &iterator)); count++) {
        char name[64];
        snprintf(name, sizeof name, "%s[%d]", label, count);
        struct place at = place_of(node, place);
        TRY(entry_read(&values[count], &entry, name, node, &at));
        if (count > 0 && values[count] <= values[count - 1]) {
            char text[SHOWN];
            return fail_at(&at, "%s is %s, and %d does not come after %d: increasing numbers are expected",
                           label, yaml_shown(list, text), values[count], values[count - 1]);
        }
    }
    *count_of(base, key) = count;
    return GDN_OK;
}

int list_resolve(const struct key *key, const char *label, struct fy_node *node, const struct place *place,
                 struct fy_node **out) {
    bool mapping = key->type == KEY_PATHS;
    TRY(yaml_resolve(node, place, label, out));
    if (*out && (mapping ? fy_node_is_mapping(*out) : fy_node_is_sequence(*out))) return GDN_OK;
    return value_wrong(key, label, *out, place);
}

int entries_read(const struct entries *of, void *base, const struct key *key, const char *label,
                 struct fy_node *list, const struct place *place) {
    char *entry = (char *)base + key->offset;
    int length = fy_node_sequence_item_count(list);
    if (length > of->most)
        return fail_at(place, "%s has %d entries: at most %d are allowed", label, length, of->most);
    memset(entry, 0, (size_t)of->most * of->size);
    void *iterator = NULL;
    for (int i = 0; i < length; i++, entry += of->size) {
        char name[48];
        snprintf(name, sizeof name, "%s[%d]", label, i);
        TRY(of->read(entry, i, key, name, fy_node_sequence_iterate(list, &iterator), place));
    }
    *count_of(base, key) = length;
    return GDN_OK;
}

void entries_write(const struct entries *of, const void *entries, int count, FILE *out) {
    fputc('[', out);
    for (int i = 0; i < count; i++) {
        if (i) fputs(", ", out);
        of->write((const char *)entries + (size_t)i * of->size, out);
    }
    fputc(']', out);
}

bool config_set_name(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(name);
    return length > 0 && length <= SET_NAME && strspn(name, allowed) == length;
}

static int validate_name(const char *name, const char *label, const struct place *place) {
    char text[SHOWN];
    if (config_set_name(name)) return GDN_OK;
    return fail_at(place, "%s: '%s' is no name: 1 to %d letters, digits, _ and - are expected", label,
                   shown(name, text), SET_NAME);
}

int list_member(struct fy_node *mapping, struct fy_node_pair *pair, const struct place *place,
                const char *label, const struct members *of, struct place *at, int *member) {
    char *found = NULL, text[SHOWN];
    int status = yaml_key(mapping, pair, place, label, &found);
    *at = place_of(fy_node_pair_key(pair), place);
    *member = 0;
    while (!status && *member < of->count && strcmp(of->key[*member].path, found)) ++*member;
    if (*member == of->count)
        status = fail_at(at, "unknown key %s.%s: %s has %s", label, shown(found, text),
                         of->entry, of->words);
    free(found);
    return status;
}

int members_read(void *base, struct fy_node *mapping, const struct place *place, const char *label,
                 const char *who, const struct members *of) {
    uint64_t given = 0;
    void *iterator = NULL;
    for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(mapping, &iterator));) {
        struct place at;
        char name[96];
        int k;
        TRY(list_member(mapping, pair, place, label, of, &at, &k));
        snprintf(name, sizeof name, "%s.%s", label, of->key[k].path);
        TRY(entry_read(base, &of->key[k], name, fy_node_pair_value(pair), &at));
        given |= UINT64_C(1) << k;
    }
    for (int k = 0; k < of->count; k++) {
        const struct key *key = &of->key[k];
        if (given >> k & 1) continue;
        if (!key->value) return fail_at(place, "%s lacks %s: %s is expected", who, key->path, key->help);
        TRY(default_read(base, key, entry_read));
    }
    return GDN_OK;
}

/* One entry of data.sources. */
static int read_source(struct source_config *source, const char *label, struct fy_node *node,
                       const struct place *list) {
    static const struct members members = {source_keys, SOURCE_KEYS, "path and weight, and may have name", "an entry"};
    struct place place = place_of(node, list);
    char text[SHOWN];
    struct fy_node *mapping;
    TRY(yaml_resolve(node, &place, label, &mapping));
    if (!mapping || !fy_node_is_mapping(mapping))
        return fail_at(&place, "%s is %s: {path: TEXT, weight: a number above 0, name: TEXT} is expected",
                       label, yaml_shown(mapping, text));
    TRY(members_read(source, mapping, &place, label, label, &members));
    return source->name[0] ? validate_name(source->name, label, &place) : GDN_OK;
}

/* Empties the member and gives it room for `length` entries. */
static int make_room(void *base, const struct key *key, int length, struct source_config ***sources) {
    list_free_sources(base, key);
    *sources = (struct source_config **)((char *)base + key->offset);
    if (length == 0) return GDN_OK;
    **sources = calloc((size_t)length, sizeof ***sources);
    if (!**sources) return gdn_fail(GDN_INTERNAL, "out of memory for %d data sources", length);
    *count_of(base, key) = length;
    return GDN_OK;
}

int list_read_sources(void *base, const struct key *key, const char *label, struct fy_node *list,
                      const struct place *place) {
    struct source_config **sources;
    TRY(make_room(base, key, fy_node_sequence_item_count(list), &sources));
    void *iterator = NULL;
    struct fy_node *node;
    for (int i = 0; (node = fy_node_sequence_iterate(list, &iterator)); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s[%d]", label, i);
        TRY(read_source(&(*sources)[i], name, node, place));
    }
    return GDN_OK;
}

/* One entry of data.validations. */
static int read_path(struct source_config *entry, const char *label, struct fy_node *mapping,
                     struct fy_node_pair *pair, const struct place *place) {
    TRY(yaml_key(mapping, pair, place, label, &entry->name));
    struct place at = place_of(fy_node_pair_key(pair), place);
    TRY(validate_name(entry->name, label, &at));
    char name[128];
    snprintf(name, sizeof name, "%s.%s", label, entry->name);
    TRY(entry_read(entry, &source_keys[SOURCE_PATH], name, fy_node_pair_value(pair), &at));
    if (!entry->path.count) return fail_at(&at, "%s is '': a file or a glob is expected", name);
    return default_read(entry, &source_keys[SOURCE_WEIGHT], entry_read);
}

int list_read_paths(void *base, const struct key *key, const char *label, struct fy_node *mapping,
                    const struct place *place) {
    int length = fy_node_mapping_item_count(mapping);
    struct source_config **entries;
    if (length > key->max)
        return fail_at(place, "%s has %d entries: at most %g are allowed", label, length, key->max);
    TRY(make_room(base, key, length, &entries));
    void *iterator = NULL;
    struct fy_node_pair *pair;
    for (int i = 0; (pair = fy_node_mapping_iterate(mapping, &iterator)); i++)
        TRY(read_path(&(*entries)[i], label, mapping, pair, place));
    return GDN_OK;
}

static void write_source(const struct source_config *source, FILE *out) {
    for (int k = 0; k < SOURCE_KEYS; k++) {
        fprintf(out, "%s%s: ", k ? ", " : "{", source_keys[k].path);
        entry_write(source, &source_keys[k], out);
    }
    fputc('}', out);
}

void list_write(const void *entries, const struct key *key, int count, FILE *out) {
    const struct source_config *sources =
        key->type == KEY_INTS ? NULL : *(struct source_config *const *)entries;
    fputc(key->type == KEY_PATHS ? '{' : '[', out);
    for (int i = 0; i < count; i++) {
        if (i > 0) fputs(", ", out);
        if (key->type == KEY_INTS) {
            fprintf(out, "%d", ((const int *)entries)[i]);
        } else if (key->type == KEY_SOURCES) {
            write_source(&sources[i], out);
        } else {
            fprintf(out, "\"%s\": ", sources[i].name);
            entry_write(&sources[i], &source_keys[SOURCE_PATH], out);
        }
    }
    fputc(key->type == KEY_PATHS ? '}' : ']', out);
}

void list_free_sources(void *base, const struct key *key) {
    struct source_config **sources = (struct source_config **)((char *)base + key->offset);
    for (int i = 0; i < *count_of(base, key); i++)
        for (int k = 0; k < SOURCE_KEYS; k++) entry_free(&(*sources)[i], &source_keys[k]);
    free(*sources);
    *sources = NULL;
    *count_of(base, key) = 0;
}
