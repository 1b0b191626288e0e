/* What may stand alone or in an entry of a list: a number, a truth value, a word, a text, or files, which are
 * one text or a list of them. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* One text of the list; an empty one stands for no files where it is alone. */
static int read_path(struct path_list *list, const char *label, struct fy_node *node, bool alone,
                     const struct place *place) {
    const struct key entry = {.type = KEY_STRING, .home = true};
    char *path = NULL;
    int status = entry_read(&path, &entry, label, node, place);
    if (!status && path[0]) status = path_list_add(list, path);
    if (!status && !path[0] && !alone) status = fail_at(place, "%s is '': a path is expected", label);
    free(path);
    return status;
}

static int read_files(void *base, const struct key *key, const char *label, struct fy_node *node,
                      const struct place *place) {
    struct path_list *list = (struct path_list *)((char *)base + key->offset);
    path_list_free(list);
    if (!fy_node_is_sequence(node)) return read_path(list, label, node, true, place);
    void *iterator = NULL;
    struct fy_node *entry;
    for (int i = 0; (entry = fy_node_sequence_iterate(node, &iterator)); i++) {
        char name[96];
        snprintf(name, sizeof name, "%s[%d]", label, i);
        struct place at = *place;
        if (place->file) at.line = yaml_line(entry, place->line);
        TRY(read_path(list, name, entry, false, &at));
    }
    return GDN_OK;
}

static void write_files(const struct path_list *list, FILE *out) {
    if (list->count != 1) fputc(list->count ? '[' : '"', out);
    for (int i = 0; i < list->count; i++) {
        if (i > 0) fputs(", ", out);
        value_write_string(list->paths[i], out);
    }
    if (list->count != 1) fputc(list->count ? ']' : '"', out);
}

int entry_read(void *base, const struct key *key, const char *label, struct fy_node *node,
               const struct place *place) {
    struct fy_node *value;
    TRY(yaml_resolve(node, place, label, &value));
    if (key->type == KEY_FILES && value && (fy_node_is_scalar(value) || fy_node_is_sequence(value)))
        return read_files(base, key, label, value, place);
    return scalar_read(base, key, label, value, place);
}

int default_read(void *base, const struct key *key, read_value *read) {
    struct place nowhere = {0};
    struct yaml yaml;
    int status = yaml_open(key->value, strlen(key->value), &nowhere, &yaml);
    if (!status) status = read(base, key, key->path, yaml_root(&yaml), &nowhere);
    yaml_close(&yaml);
    return status;
}

void entry_write(const void *base, const struct key *key, FILE *out) {
    if (key->type == KEY_FILES)
        write_files((const struct path_list *)((const char *)base + key->offset), out);
    else
        scalar_write(base, key, out);
}

void entry_free(void *base, const struct key *key) {
    void *member = (char *)base + key->offset;
    if (key->type == KEY_FILES) path_list_free(member);
    if (key->type != KEY_STRING) return;
    free(*(char **)member);
    *(char **)member = NULL;
}
