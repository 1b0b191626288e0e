#include "train/run.h"

#include "model/params.h"
#include "train/run_ranks.h"
#include "train/state.h"

#include <stdlib.h>

int run_prepare(struct run *run, FILE *log) {
    const struct mesh_config *axes = &run->config.mesh;
    TRY(ranks_arrange(&run->mesh, axes->data, axes->tensor, axes->pipeline));
    TRY(ranks_share_cores(&run->mesh, log));
    run->ops = ops_find("cpu"); /* what every `device` means in this version (config.h) */
    TRY(mesh_agree(&run->mesh, run->ops ? 0 : gdn_fail(GDN_INPUT, "this machine has no CPU backend")));
    return mesh_agree(&run->mesh, params_create(&run->config.model, &run->table));
}

int run_reserve(struct run *run) {
    run->weights.name = "weights, gradients and optimiser state";
    TRY(mesh_agree(&run->mesh, state_reserve(&run->weights, &run->table, true, &run->state)));
    return mesh_agree(&run->mesh, mesh_reserve(&run->mesh, run->table.total));
}

void run_free(struct run *run) {
    evaluation_free(&run->evaluation);
    model_free(run->model);
    sampler_close(run->data);
    sampler_close(run->validation);
    params_free(&run->table);
    arena_free(&run->weights);
    free(run->rows);
    free(run->config_text);
    config_free(&run->config);
}
