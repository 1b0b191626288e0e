#include "tests/train/run/mesh_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool write_text(char *path) {
    int file = mkstemp(path);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (!out) return false;
    for (int i = 0; i < 4000; i++) fprintf(out, "%d ", i * i);
    return fclose(out) == 0;
}

bool make_up_text(struct mesh *mesh, char *path) {
    bool written = mesh->rank != 0 || write_text(path);
    return !mesh_any(mesh, !written) && !mesh_broadcast(mesh, path, (long)strlen(path) + 1);
}

void overrides_fill(struct overrides *o, int data, int tensor, int pipeline, const char *path,
                    char *const *set, int most) {
    *o = (struct overrides){.count = 4};
    snprintf(o->axes[0], sizeof o->axes[0], "mesh.data=%d", data);
    snprintf(o->axes[1], sizeof o->axes[1], "mesh.tensor=%d", tensor);
    snprintf(o->axes[2], sizeof o->axes[2], "mesh.pipeline=%d", pipeline);
    snprintf(o->data, sizeof o->data, "data.train=%s", path);
    for (int i = 0; i < 3; i++) o->set[i] = o->axes[i];
    o->set[3] = o->data;
    for (int i = 0; i < most && set[i]; i++) o->set[o->count++] = set[i];
}

int prepared(struct run *run, const char *base, const struct overrides *overrides) {
    TRY(config_parse(base, "test", overrides->set, overrides->count, &run->config));
    return run_prepare(run, NULL);
}

int readied(struct run *run) {
    const struct checkpoint none = {0};
    TRY(run_open_data(run));
    TRY(run_reserve(run));
    TRY(run_load(run, &none, NULL));
    return run_create(run);
}
