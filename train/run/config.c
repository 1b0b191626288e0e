/* The configuration of a run, the same on all ranks. */
#include "train/run/run.h"

#include <stdlib.h>
#include <string.h>

int run_resolve_text(struct run *run) {
    free(run->config_text);
    run->config_text = config_text(&run->config);
    return run->config_text ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the configuration's text");
}

static int read_config(struct run *run, const char *path, char *const *set, int count) {
    TRY(config_load(path, set, count, &run->config));
    return run_resolve_text(run);
}

/* Each rank reads the file by itself: a node may have an older copy of it. */
static int agree(struct run *run) {
    long length = (long)strlen(run->config_text) + 1;
    TRY(mesh_broadcast(&run->mesh, &length, sizeof length));
    char *first = calloc((size_t)length, 1);
    TRY(mesh_agree(&run->mesh, first ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a configuration")));
    if (run->mesh.rank == 0) strcpy(first, run->config_text);
    int status = mesh_broadcast(&run->mesh, first, length);
    if (!status) status = mesh_agree(&run->mesh, config_match_ranks(&run->config, first));
    free(first);
    return status;
}

int run_configure(struct run *run, const char *path, char *const *set, int count) {
    TRY(mesh_agree(&run->mesh, read_config(run, path, set, count)));
    return run->mesh.size > 1 ? agree(run) : 0;
}
