/* One key's value, of whatever type: from YAML into its member, and back. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* How the key's list of structs is read and written; NULL: it is none. */
static const struct entries *entries_of(const struct key *key) {
    static const struct entries *const of[KEY_PATHS + 1] = {
        [KEY_REALS] = &real_entries, [KEY_EDGES] = &edge_entries, [KEY_RAMP] = &ramp_entries, [KEY_GROUPS] = &group_entries, [KEY_RULES] = &rule_entries};
    return of[key->type];
}

static bool is_list(const struct key *key) {
    return entries_of(key) || key->type == KEY_INTS || key->type == KEY_SOURCES || key->type == KEY_PATHS;
}

int value_read(void *base, const struct key *key, const char *label, struct fy_node *node,
               const struct place *place) {
    const struct entries *entries = entries_of(key);
    struct fy_node *value;
    if (!is_list(key)) return entry_read(base, key, label, node, place);
    TRY(list_resolve(key, label, node, place, &value));
    if (entries) return entries_read(entries, base, key, label, value, place);
    if (key->type == KEY_PATHS) return list_read_paths(base, key, label, value, place);
    if (key->type == KEY_INTS) return list_read_ints(base, key, label, value, place);
    return list_read_sources(base, key, label, value, place);
}

int value_default(void *base, const struct key *key) {
    return default_read(base, key, value_read);
}

void value_write(const void *base, const struct key *key, FILE *out) {
    if (!is_list(key)) {
        entry_write(base, key, out);
        return;
    }
    const struct entries *of = entries_of(key);
    const void *entries = (const char *)base + key->offset;
    int count = *(const int *)((const char *)base + key->count_offset);
    if (of)
        entries_write(of, entries, count, out);
    else
        list_write(entries, key, count, out);
}

char *value_text(const void *base, const struct key *key) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    value_write(base, key, out);
    return fclose(out) ? (free(text), NULL) : text;
}

bool value_same(const void *a, const void *b, const struct key *key) {
    char *left = value_text(a, key), *right = value_text(b, key);
    bool same = left && right && !strcmp(left, right);
    free(left);
    free(right);
    return same;
}

void value_free(void *base, const struct key *key) {
    if (key->type == KEY_SOURCES || key->type == KEY_PATHS)
        list_free_sources(base, key);
    else
        entry_free(base, key);
}
