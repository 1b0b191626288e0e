#include "train/saved_model.h"
#include "kernels/base/status.h"
#include "model/params.h"
#include "train/state.h"

#include <stdlib.h>

static int load(const struct mesh *mesh, const char *given, char *const *overrides, int count,
                struct saved_model *out) {
    struct checkpoint_info info = {0};
    TRY(checkpoint_resolve(given, &out->path));
    TRY(checkpoint_info(out->path, &info));
    int status = config_parse(info.config, out->path, overrides, count, &out->config);
    free(info.config);
    TRY(status);
    TRY(params_create(&out->config.model, &out->table));
    out->weights.name = "a checkpoint's weights";
    TRY(state_reserve(&out->weights, &out->table, false, &out->state));
    TRY(checkpoint_load(mesh, out->path, &out->table, &out->state, &info));
    out->step = (long)info.step;
    free(info.config);
    return GDN_OK;
}

int saved_model_load(const struct mesh *mesh, const char *given, char *const *overrides, int count,
                     struct saved_model *out) {
    *out = (struct saved_model){0};
    int status = load(mesh, given, overrides, count, out);
    if (status) saved_model_free(out);
    return status;
}

void saved_model_free(struct saved_model *saved) {
    arena_free(&saved->weights);
    free(saved->path);
    params_free(&saved->table);
    config_free(&saved->config);
    *saved = (struct saved_model){0};
}
