#include "data/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

int path_list_add(struct path_list *list, const char *path) {
    /* doubled where it is full, which it is at every power of two */
    if ((list->count & (list->count - 1)) == 0) {
        size_t room = list->count ? 2 * (size_t)list->count : 1;
        char **paths = realloc(list->paths, room * sizeof *paths);
        if (!paths) return gdn_fail(GDN_INTERNAL, "no memory for the names of %zu files", room);
        list->paths = paths;
    }
    char *copy = strdup(path);
    if (!copy) return gdn_fail(GDN_INTERNAL, "%s: no memory for its name", path);
    list->paths[list->count++] = copy;
    return GDN_OK;
}

void path_list_free(struct path_list *list) {
    for (int i = 0; i < list->count; i++) free(list->paths[i]);
    free(list->paths);
    free(list->made_of);
    *list = (struct path_list){0};
}

const char *path_list_name(const struct path_list *list, char *out, size_t size) {
    if (list->made_of)
        snprintf(out, size, "%s", list->made_of);
    else if (list->count > 1)
        snprintf(out, size, "%s and %d more", list->paths[0], list->count - 1);
    else
        snprintf(out, size, "%s", list->count ? list->paths[0] : "");
    return out;
}
