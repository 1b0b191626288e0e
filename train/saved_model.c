#include "train/saved_model.h"
#include "kernels/base/status.h"
#include "model/params.h"
#include "train/state.h"

#include <stdlib.h>

/* What the checkpoint's own configuration says, and weights in its shape. Not collective. */
static int prepare(const struct checkpoint_info *info, char *const *overrides, int count,
                   struct saved_model *out) {
    TRY(config_parse(info->config, out->path, overrides, count, &out->config));
    TRY(params_create(&out->config.model, NULL, &out->table));
    out->step = (long)info->step;
    return state_reserve(&out->memory, &out->table, false, 0, &out->state);
}

static int load(const struct mesh *mesh, const char *given, char *const *overrides, int count,
                struct saved_model *out) {
    struct checkpoint checkpoint;
    TRY(mesh_agree(mesh, checkpoint_resolve(given, &out->path)));
    TRY(checkpoint_open(mesh, out->path, &checkpoint));
    int status = mesh_agree(mesh, prepare(&checkpoint.info, overrides, count, out));
    struct checkpoint_content content = {.whole = &out->table, .table = &out->table, .state = &out->state};
    if (!status) status = checkpoint_load(mesh, &checkpoint, &content);
    checkpoint_close(&checkpoint);
    return status;
}

int saved_model_load(const struct mesh *mesh, const char *given, char *const *overrides, int count,
                     struct saved_model *out) {
    *out = (struct saved_model){0};
    int status = load(mesh, given, overrides, count, out);
    if (status) saved_model_free(out);
    return status;
}

void saved_model_free(struct saved_model *saved) {
    state_free(&saved->memory);
    free(saved->path);
    params_free(&saved->table);
    config_free(&saved->config);
    *saved = (struct saved_model){0};
}
