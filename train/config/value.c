/* One key's value, of whatever type: from YAML into its member, and back. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

static bool is_list(const struct key *key) {
    return key->type == KEY_INTS || key->type == KEY_RAMP || key->type == KEY_GROUPS ||
           key->type == KEY_RULES || key->type == KEY_SOURCES || key->type == KEY_PATHS;
}

int value_read(void *base, const struct key *key, const char *label, struct fy_node *node,
               const struct place *place) {
    struct fy_node *value;
    if (!is_list(key)) return entry_read(base, key, label, node, place);
    TRY(yaml_resolve(node, place, label, &value));
    bool mapping = key->type == KEY_PATHS;
    if (!value || !(mapping ? fy_node_is_mapping(value) : fy_node_is_sequence(value)))
        return value_wrong(key, label, value, place);
    if (mapping) return list_read_paths(base, key, label, value, place);
    if (key->type == KEY_INTS) return list_read_ints(base, key, label, value, place);
    if (key->type == KEY_RAMP) return ramp_read(base, key, label, value, place);
    if (key->type == KEY_GROUPS) return groups_read(base, key, label, value, place);
    if (key->type == KEY_RULES) return rules_read(base, key, label, value, place);
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
    const void *entries = (const char *)base + key->offset;
    int count = *(const int *)((const char *)base + key->count_offset);
    if (key->type == KEY_RAMP)
        ramp_write(entries, count, out);
    else if (key->type == KEY_GROUPS)
        groups_write(entries, count, out);
    else if (key->type == KEY_RULES)
        rules_write(entries, count, out);
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
