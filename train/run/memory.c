/* The run's memory, as it has been reserved. */
#include "train/run/run.h"

#include "train/deltas/delta_store.h"
#include "train/plan/rank_plan.h"

struct memory run_memory(const struct run *run) {
    struct model_memory model;
    model_memory(run->trainer.model, &model);
    const struct delta_place store = {
        .config = &run->config,
        .layout = run->part.layout,
        .edges = &run->part.pipeline.edges,
        .batch = run->part.micro_batch,
    };
    struct memory memory = {{
        [MEMORY_WEIGHTS] = (int64_t)(run->training.memory.weights.size + run->training.memory.copy.size +
                                     run->training.memory.steps.size),
        [MEMORY_GRADIENTS] = (int64_t)run->training.memory.gradients.size,
        [MEMORY_OPTIMIZER] = (int64_t)run->training.memory.optimizer.size,
        [MEMORY_ACTIVATIONS] = model.activations,
        [MEMORY_SOURCES] = model.sources,
        [MEMORY_COMMUNICATION] = run->trainer.sync_bytes + executor_memory(run->trainer.executor),
        [MEMORY_WORKSPACE] = model.workspace + optimizer_reserved(&run->trainer.optimizer) +
                             batch_bytes(&run->config, run->part.share) +
                             delta_store_memory(&store, run->mesh.batch.index, run->mesh.axis[AXIS_CONTEXT].index),
        [MEMORY_CHECKPOINT] = run->copy_bytes,
    }};
    if (run->data.validation.sets) evaluation_memory(&run->evaluation, &memory);
    for (int a = 0; a < axes_count(); a++)
        memory.bytes[MEMORY_COMMUNICATION] += run->mesh.axis[a].pieces_count * (int64_t)sizeof(real);
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
    TRY(mesh_find_max(&run->mesh, memory_sum(&mine.reserved), &max));
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
