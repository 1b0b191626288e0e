#include "train/run.h"

#include "model/params.h"
#include "train/run_ranks.h"

#include <stdlib.h>

int run_prepare(struct run *run, FILE *log) {
    const struct mesh_config *axes = &run->config.mesh;
    TRY(ranks_arrange(&run->mesh, axes->data, axes->tensor, axes->pipeline));
    TRY(ranks_share_cores(&run->mesh, log));
    run->ops = ops_find("cpu"); /* what every `device` means in this version (config.h) */
    TRY(mesh_agree(&run->mesh, run->ops ? 0 : gdn_fail(GDN_INPUT, "this machine has no CPU backend")));
    return mesh_agree(&run->mesh, params_create(&run->config.model, &run->table));
}

/* The flat buffers, one after the other; called once to count and once to hand out. */
static void lay_out(struct run *run) {
    size_t bytes = (size_t)run->table.total * sizeof(real);
    run->state.weight = arena_take(&run->weights, bytes);
    run->state.gradient = arena_take(&run->weights, bytes);
    run->state.exp_avg = arena_take(&run->weights, bytes);
    run->state.exp_avg_sq = arena_take(&run->weights, bytes);
    run->state.steps = arena_take(&run->weights, (size_t)run->table.rows * sizeof *run->state.steps);
}

static int reserve(struct run *run) {
    run->weights.name = "weights, gradients and optimiser state";
    lay_out(run);
    TRY(arena_reserve(&run->weights));
    lay_out(run);
    return 0;
}

int run_reserve(struct run *run) {
    TRY(mesh_agree(&run->mesh, reserve(run)));
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
