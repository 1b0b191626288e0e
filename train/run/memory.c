/* The run's memory: planned before anything is reserved, and counted afterwards. */
#include "train/run/run.h"

#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/deltas/delta_store.h"
#include "train/plan/fit.h"
#include "train/plan/rank_plan.h"
#include "train/memory/saving.h"
#include "train/plan/recompute_auto.h"

/* What a plan of this run works on; evaluations as they will be on the data that are open. */
struct planning {
    struct rank_work work;
    struct evaluation evaluation;
};

static int prepare(struct run *run, struct planning *planning) {
    const struct mesh *mesh = &run->mesh;
    const struct model_config *model = &run->config.model;
    planning->work = (struct rank_work){
        .config = &run->config,
        .pipeline = &run->part.pipeline,
        .data = mesh->data.size,
        .tensor = mesh->tensor.size,
        .share = run->part.share,
        .micro_batch = run->part.micro_batch,
    };
    run->plan.policy = calloc((size_t)model->num_layers, sizeof *run->plan.policy);
    if (!run->plan.policy) return gdn_fail(GDN_INTERNAL, "out of memory for %d layers", model->num_layers);
    if (!run->data.validation.sets) return 0;
    planning->work.evaluation = &planning->evaluation;
    return evaluation_describe(&run->config, mesh->data.size, mesh->data.index, mesh->tensor.index,
                               validation_max(&run->data.validation), &planning->evaluation);
}

/* For the layers of this rank; all ranks that have the same ones come to the same choice. */
static int choose(struct run *run, const struct planning *planning) {
    if (!recompute_chosen(&run->config.train)) return 0;
    if (!run->plan.available.bytes)
        return gdn_fail(GDN_INPUT,
                        "train.recompute or recompute_delta is auto, but this system does not tell how "
                        "much memory it has; give the GiB that a rank may use as train.memory");
    return recompute_auto(&planning->work, run->mesh.pipeline.index, run->plan.available.bytes,
                          run->plan.policy, &run->plan.ratio);
}

/* What other ranks chose, for whoever describes the run. What is fixed is so on all ranks, and of what is
 * chosen a rank leaves others' layers at 0. */
static int share_choice(struct run *run) {
    int bytes = run->config.model.num_layers * (int)sizeof *run->plan.policy;
    TRY(mesh_reduce(&run->mesh, run->plan.policy, bytes, MPI_UNSIGNED_CHAR, MPI_MAX));
    return mesh_reduce(&run->mesh, &run->plan.ratio, 1, MPI_DOUBLE, MPI_MAX);
}

static int plan_rank(struct run *run, const struct planning *planning) {
    struct rank_plan plan;
    struct pass_costs costs;
    TRY(rank_plan_create(&planning->work, run->mesh.tensor.index, run->mesh.pipeline.index, &plan));
    int status = rank_plan_costs(&plan, run->plan.policy, &costs);
    if (!status) {
        status = rank_plan_memory(&plan, &costs, &run->plan.planned);
        pass_costs_free(&costs);
    }
    rank_plan_free(&plan);
    return status;
}

/* Whether several ranks may save beside training: their threads call MPI. */
static bool has_threads(const struct mesh *mesh) {
    int provided = MPI_THREAD_MULTIPLE;
    return mesh->size == 1 || (MPI_Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE);
}

/* This rank's memory, with what is computed again. */
static int plan_all(struct run *run, struct planning *planning) {
    recompute_fixed(&run->config.train, run->config.model.num_layers, run->plan.policy);
    TRY(mesh_agree(&run->mesh, choose(run, planning)));
    TRY(share_choice(run));
    return mesh_agree(&run->mesh, plan_rank(run, planning));
}

/* checkpoint.asynchronous auto: with a copy where all ranks have the memory for it, else planned anew
 * without. */
static int choose_saving(struct run *run, struct planning *planning) {
    int *saving = &run->config.checkpoint.asynchronous;
    if (*saving != SAVE_AUTO) return 0;
    bool threads = has_threads(&run->mesh);
    int without = mesh_any(&run->mesh, !threads || !memory_fits(&run->plan.available, &run->plan.planned));
    if (without < 0) return GDN_INTERNAL;
    *saving = without ? SAVE_FOREGROUND : SAVE_BACKGROUND;
    if (!without) return 0;
    if (saver_has_intervals(&run->config))
        run->plan.foreground = threads ? saver_no_memory : "this MPI has no MPI_THREAD_MULTIPLE";
    planning->work.without_copy = true;
    return plan_all(run, planning);
}

/* Who needs most: bytes and its number. */
static int find_max(const struct mesh *mesh, int64_t bytes, int *rank) {
    struct {
        long bytes;
        int rank;
    } max = {bytes, mesh->rank};
    TRY(mesh_reduce(mesh, &max, 1, MPI_LONG_INT, MPI_MAXLOC));
    *rank = max.rank;
    return 0;
}

/* The rank that needs most speaks for all: it alone looks for what would fit. */
static int check(struct run *run) {
    int max;
    const struct fit fit = {&run->config, run->mesh.size, &run->plan.available};
    TRY(find_max(&run->mesh, memory_sum(&run->plan.planned), &max));
    return mesh_agree(&run->mesh,
                      run->mesh.rank == max ? fit_verify(&fit, "this run", &run->plan.planned) : 0);
}

static int plan(struct run *run, struct planning *planning) {
    TRY(mesh_agree(&run->mesh, prepare(run, planning)));
    TRY(memory_measure(&run->config, &run->mesh, run->ops->device, &run->plan.available));
    TRY(plan_all(run, planning));
    TRY(choose_saving(run, planning));
    return check(run);
}

int run_plan(struct run *run) {
    struct planning planning = {0};
    int status = plan(run, &planning);
    evaluation_free(&planning.evaluation);
    return status;
}

struct memory run_memory(const struct run *run) {
    const struct axis *axes[] = {&run->mesh.data, &run->mesh.tensor, &run->mesh.pipeline};
    struct model_memory model;
    model_memory(run->trainer.model, &model);
    const struct delta_place store = {
        .config = &run->config,
        .layout = run->part.layout,
        .edges = &run->part.pipeline.edges,
        .batch = run->part.micro_batch,
    };
    struct memory memory = {{
        [MEMORY_WEIGHTS] = (int64_t)(run->training.memory.weights.size + run->training.memory.steps.size),
        [MEMORY_GRADIENTS] = (int64_t)run->training.memory.gradients.size,
        [MEMORY_OPTIMIZER] = (int64_t)run->training.memory.optimizer.size,
        [MEMORY_ACTIVATIONS] = model.activations,
        [MEMORY_SOURCES] = model.sources,
        [MEMORY_COMMUNICATION] = run->trainer.sync_bytes + executor_memory(run->trainer.executor),
        [MEMORY_WORKSPACE] = model.workspace + (int64_t)run->trainer.optimizer.scratch.size +
                             batch_bytes(run->part.share, run->config.train.sequence_length) +
                             delta_store_memory(&store, run->mesh.data.index),
        [MEMORY_CHECKPOINT] = run->copy_bytes,
    }};
    if (run->data.validation.sets) evaluation_memory(&run->evaluation, &memory);
    for (int i = 0; i < 3; i++)
        memory.bytes[MEMORY_COMMUNICATION] += axes[i]->pieces_count * (int64_t)sizeof(real);
    return memory;
}

int run_measure_memory(const struct run *run, struct run_max_memory *out) {
    struct run_max_memory mine = {
        .rank = run->mesh.rank,
        .planned = run->plan.planned,
        .reserved = run_memory(run),
        .available = run->plan.available.bytes,
        .peak = memory_peak(),
    };
    int max;
    TRY(find_max(&run->mesh, memory_sum(&mine.reserved), &max));
    TRY(mesh_broadcast_from(&run->mesh, max, &mine, sizeof mine));
    *out = mine;
    return 0;
}

static void record_parts(struct metrics *metrics, const char *what, const struct memory *memory) {
    for (int i = 0; i <= MEMORY_PARTS; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_%s", what, i < MEMORY_PARTS ? memory_key[i] : "sum");
        metrics_integer(metrics, key, i < MEMORY_PARTS ? memory->bytes[i] : memory_sum(memory));
    }
}

int run_record_memory(const struct run *run, struct metrics *metrics) {
    struct run_max_memory max;
    TRY(run_measure_memory(run, &max));
    metrics_begin(metrics, "memory");
    metrics_integer(metrics, "step", run->position.step);
    metrics_integer(metrics, "rank", max.rank);
    record_parts(metrics, "planned", &max.planned);
    record_parts(metrics, "reserved", &max.reserved);
    metrics_integer(metrics, "available", max.available);
    metrics_integer(metrics, "peak_resident", max.peak);
    metrics_end(metrics);
    return 0;
}
