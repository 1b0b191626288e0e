#include "train/command/saved_model.h"
#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "model/table/params.h"
#include "train/run/backend.h"
#include "train/memory/state.h"

#include <stdlib.h>

/* What the checkpoint's own configuration says, and weights in its shape. Not collective. */
static int prepare(const struct checkpoint_info *info, char *const *overrides, int count,
                   struct saved_model *out) {
    TRY(config_parse_trained(info->config, out->path, overrides, count, &out->config, &out->asked));
    TRY(gdn_fail_in(config_keep_left(&out->config, info->pruning), "%s", out->path));
    TRY(run_tokenizer_of_checkpoint(info, out->path, &out->tokenizer));
    if (!out->tokenizer.file && !config_tokens_are_bytes(&out->config)) /* --format says that they are none */
        carried_free(&out->tokenizer);
    if (out->tokenizer.name && !out->asked.tokenizer) out->config.data.tokenizer[0] = 0; /* that one */
    TRY(params_create(&out->config.model, NULL, &out->table));
    out->step = (long)info->step;
    return state_reserve(&out->memory, NULL, 0, &out->table, STATE_WEIGHTS, NULL, &out->state);
}

static int load(const struct mesh *mesh, const char *given, char *const *overrides, int count,
                struct saved_model *out) {
    struct checkpoint checkpoint;
    TRY(mesh_agree(mesh, checkpoint_resolve(given, &out->path)));
    TRY(checkpoint_open(mesh, out->path, &checkpoint));
    int status = mesh_agree(mesh, prepare(&checkpoint.info, overrides, count, out));
    struct checkpoint_content content = {.global = &out->table,
                                         .table = &out->table,
                                         .state = &out->state,
                                         .part = checkpoint.info.pruning != NULL}; /* those of connections that went */
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

int saved_model_active(const struct saved_model *saved, struct edge_set *active) {
    const struct model_config *model = &saved->config.model;
    struct edges edges;
    TRY(edges_create(model, &edges));
    int distances = active_distances(&model->delta, saved->step > 0 ? saved->step - 1 : 0);
    int status = edges_introduced(&edges, distances, active);
    edges_free(&edges);
    return status;
}

static int move(struct saved_model *saved, const struct ops *ops) {
    struct state_memory host = saved->memory;
    const struct device *device = ops->device;
    if (device->host) return 0;
    saved->memory = (struct state_memory){0};
    int status = state_reserve(&saved->memory, device, ops_weight_copy(ops), &saved->table, STATE_WEIGHTS,
                               NULL, &saved->state);
    if (!status) status = state_copy(&saved->memory, &host);
    state_free(&host);
    return status;
}

int saved_model_place(struct saved_model *saved, const struct mesh *mesh, FILE *log, const struct ops **ops) {
    struct config *config = &saved->config;
    int trained_in = config->train.precision;
    if (!saved->asked.device) config->device = DEVICE_AUTO;
    if (config->device == DEVICE_AUTO) TRY(backend_find(mesh, &config->device));
    bool host_has = trained_in == PRECISION_FP32 || trained_in == PRECISION_BF16;
    if (config->device == DEVICE_CPU && !host_has && !saved->asked.precision) {
        if (log)
            fprintf(log, "gdn: note: %s was trained in train.precision %s; the cpu computes in fp32\n",
                    saved->path, precision_word[trained_in]);
        config->train.precision = PRECISION_FP32;
    }
    config->train.graphs = false; /* of training */
    TRY(backend_choose(config, mesh, ops));
    return mesh_agree(mesh, move(saved, *ops));
}

void saved_model_free(struct saved_model *saved) {
    state_free(&saved->memory);
    free(saved->path);
    params_free(&saved->table);
    carried_free(&saved->tokenizer);
    config_free(&saved->config);
    *saved = (struct saved_model){0};
}
