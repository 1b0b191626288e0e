#include "train/plan/memory_plan.h"

#include <stdlib.h>
#include <string.h>

#include "train/memory/saving.h"
#include "train/plan/fit.h"
#include "train/plan/rank_plan.h"
#include "train/plan/recompute_auto.h"

/* A plan as it is made; evaluations as they will be on the data that are open. */
struct draft {
    const struct memory_planning *run;
    struct memory_plan *plan; /* out */
    struct rank_work work;
    struct evaluation evaluation;
};

static int prepare(struct draft *d) {
    const struct mesh *mesh = d->run->mesh;
    const struct config *config = d->run->config;
    const int layers = config->model.num_layers;
    d->work = (struct rank_work){
        .config = config,
        .pipeline = &d->run->part->pipeline,
        .share = d->run->part->share,
        .micro_batch = d->run->part->micro_batch,
    };
    const struct axis_sizes joined = axes_joined(mesh->sizes.size);
    memcpy(d->work.size, joined.size, sizeof d->work.size);
    const struct partition_place place = partition_place_of(mesh->sizes.size, mesh->rank);
    d->plan->policy = calloc((size_t)layers, sizeof *d->plan->policy);
    if (!d->plan->policy) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", layers);
    if (!d->run->validation->sets) return 0;
    d->work.evaluation = &d->evaluation;
    return evaluation_describe(config, &place, validation_max(d->run->validation), &d->evaluation);
}

/* For the layers of this rank; all ranks that have the same ones come to the same choice. */
static int choose(struct draft *d) {
    struct memory_plan *plan = d->plan;
    if (!recompute_chosen(&d->run->config->train)) return 0;
    if (!plan->available.bytes)
        return gdn_fail(GDN_INPUT,
                        "train.recompute or recompute_delta is auto, but this system does not tell how "
                        "much memory it has; give the GiB that a rank may use as train.memory");
    return recompute_auto(&d->work, d->run->mesh->axis[AXIS_PIPELINE].index, plan->available.bytes,
                          plan->policy, &plan->ratio);
}

/* What other ranks chose, for whoever describes the run. What is fixed is so on all ranks, and of what is
 * chosen a rank leaves others' layers at 0. */
static int share_choice(struct draft *d) {
    int bytes = d->run->config->model.num_layers * (int)sizeof *d->plan->policy;
    TRY(mesh_reduce(d->run->mesh, d->plan->policy, bytes, MPI_UNSIGNED_CHAR, MPI_MAX));
    return mesh_reduce(d->run->mesh, &d->plan->ratio, 1, MPI_DOUBLE, MPI_MAX);
}

static int plan_rank(struct draft *d) {
    const struct mesh *mesh = d->run->mesh;
    struct rank_plan plan;
    struct pass_costs costs;
    TRY(rank_plan_create(&d->work, mesh->axis[AXIS_TENSOR].index, mesh->axis[AXIS_PIPELINE].index, &plan));
    int status = rank_plan_costs(&plan, d->plan->policy, &costs);
    if (!status) {
        status = rank_plan_memory(&plan, &costs, &d->plan->planned);
        pass_costs_free(&costs);
    }
    rank_plan_free(&plan);
    return status;
}

/* This rank's memory, with what is computed again. */
static int plan_all(struct draft *d) {
    recompute_fixed(&d->run->config->train, d->run->config->model.num_layers, d->plan->policy);
    TRY(mesh_agree(d->run->mesh, choose(d)));
    TRY(share_choice(d));
    return mesh_agree(d->run->mesh, plan_rank(d));
}

/* checkpoint.asynchronous auto: with a copy where all ranks have the memory for it, else planned anew
 * without. Threads that save call MPI. */
static int choose_saving(struct draft *d) {
    const struct mesh *mesh = d->run->mesh;
    int *saving = &d->run->config->checkpoint.asynchronous;
    if (*saving != SAVE_AUTO) return 0;
    bool threads = mesh->size == 1 || mesh_threads();
    int without = mesh_any(mesh, !threads || !memory_fits(&d->plan->available, &d->plan->planned));
    if (without < 0) return GDN_INTERNAL;
    *saving = without ? SAVE_FOREGROUND : SAVE_BACKGROUND;
    if (!without) return 0;
    if (saver_has_intervals(d->run->config))
        d->plan->foreground = threads ? saver_no_memory : "this MPI has no MPI_THREAD_MULTIPLE";
    d->work.without_copy = true;
    return plan_all(d);
}

/* The rank that needs most speaks for all: it alone looks for what would fit. */
static int verify(struct draft *d) {
    const struct mesh *mesh = d->run->mesh;
    const struct fit fit = {d->run->config, mesh->size, &d->plan->available};
    int max;
    TRY(mesh_find_max(mesh, memory_sum(&d->plan->planned), &max));
    return mesh_agree(mesh, mesh->rank == max ? fit_verify(&fit, "this run", &d->plan->planned) : 0);
}

static int plan(struct draft *d) {
    TRY(mesh_agree(d->run->mesh, prepare(d)));
    TRY(memory_measure(d->run->config, d->run->mesh, d->run->device, &d->plan->available));
    TRY(plan_all(d));
    TRY(choose_saving(d));
    return verify(d);
}

int memory_plan_create(const struct memory_planning *planning, struct memory_plan *out) {
    struct draft draft = {.run = planning, .plan = out};
    *out = (struct memory_plan){.ratio = 0};
    int status = plan(&draft);
    evaluation_free(&draft.evaluation);
    return status;
}

void memory_plan_free(struct memory_plan *plan) {
    free(plan->policy);
}
