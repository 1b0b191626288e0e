#include "train/run/config.h"

#include <stdlib.h>
#include <string.h>

int run_config_resolve(const struct config *config, char **text) {
    free(*text);
    *text = config_text(config);
    return *text ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the configuration's text");
}

static int read_config(const char *path, char *const *set, int count, struct config *config, char **text) {
    TRY(config_load(path, set, count, config));
    return run_config_resolve(config, text);
}

/* Each rank reads the file by itself: a node may have an older copy of it. */
static int agree(const struct mesh *mesh, const struct config *config, const char *text) {
    long length = (long)strlen(text) + 1;
    TRY(mesh_broadcast(mesh, &length, sizeof length));
    char *first = calloc((size_t)length, 1);
    TRY(mesh_agree(mesh, first ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a configuration")));
    if (mesh->rank == 0) strcpy(first, text);
    int status = mesh_broadcast(mesh, first, length);
    if (!status) status = mesh_agree(mesh, config_match_ranks(config, first));
    free(first);
    return status;
}

int run_config_read(const struct mesh *mesh, const char *path, char *const *set, int count,
                    struct config *config, char **text) {
    TRY(mesh_agree(mesh, read_config(path, set, count, config, text)));
    return mesh->size > 1 ? agree(mesh, config, *text) : 0;
}
