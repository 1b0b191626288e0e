/* Keys whose value is a path, or several: one text or a list of them, and ~/ for the home directory. */
#include "train/config/private.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

/* Paths are written back as they were found, so that config.yaml means the same to whoever reads it. */
int home_expand(const char *label, const struct place *place, char **text) {
    char name[SHOWN], *whole;
    const char *home = getenv("HOME");
    if ((*text)[0] != '~') return GDN_OK;
    shown(*text, name);
    if ((*text)[1] != '/')
        return fail_at(place,
                       "%s is '%s': only ~/ stands for a home directory; the whole path is expected, or for "
                       "a file of this name ./%s",
                       label, name, name);
    if (!home || home[0] != '/')
        return fail_at(place, "%s is '%s', but HOME, which ~ stands for, is not set to a path", label, name);
    if (asprintf(&whole, "%s%s", home, *text + 1) < 0)
        return gdn_fail(GDN_INTERNAL, "out of memory for the configuration");
    free(*text);
    *text = whole;
    return GDN_OK;
}

/* One text of the list; an empty one stands for no files where it is alone. */
static int read_path(struct path_list *list, const char *label, struct fy_node *node, bool alone,
                     const struct place *place) {
    const struct key entry = {.type = KEY_STRING, .home = true};
    char *path = NULL;
    int status = value_read(&path, &entry, label, node, place);
    if (!status && path[0]) status = path_list_add(list, path);
    if (!status && !path[0] && !alone) status = fail_at(place, "%s is '': a path is expected", label);
    free(path);
    return status;
}

int list_read_files(void *base, const struct key *key, const char *label, struct fy_node *node,
                    const struct place *place) {
    struct path_list *list = (struct path_list *)((char *)base + key->offset);
    value_free(base, key);
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

void list_write_files(const struct path_list *list, FILE *out) {
    if (list->count != 1) fputc(list->count ? '[' : '"', out);
    for (int i = 0; i < list->count; i++) {
        if (i > 0) fputs(", ", out);
        value_write_string(list->paths[i], out);
    }
    if (list->count != 1) fputc(list->count ? ']' : '"', out);
}
