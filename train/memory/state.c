#include "train/memory/state.h"
#include "kernels/base/status.h"

/* Called once to count and once to hand out. */
static void lay_out(struct state_memory *memory, long copy, const struct table *table, enum state_kind kind,
                    const struct shards *shards, struct state *state) {
    size_t bytes = (size_t)table->total * sizeof(real);
    *state = (struct state){.weight = arena_take(&memory->weights, bytes)};
    if (copy) state->copy = arena_take(&memory->copy, (size_t)(table->total * copy));
    state->steps = arena_take(&memory->steps, (size_t)table->rows * sizeof *state->steps);
    if (kind == STATE_TRAINING) state->gradient = arena_take(&memory->gradients, bytes);
    if (kind == STATE_WEIGHTS) return;
    for (int m = 0; m < MOMENTS && shards->kept[m]; m++)
        state->moment[m] = arena_take(&memory->optimizer, (size_t)shards->kept[m] * sizeof(real));
}

int state_reserve(struct state_memory *memory, const struct device *device, long copy,
                  const struct table *table, enum state_kind kind, const struct shards *shards,
                  struct state *state) {
    state_plan(memory, device, copy, table, kind, shards);
    struct arena *const arenas[] = {&memory->weights, &memory->copy, &memory->steps, &memory->gradients,
                                    &memory->optimizer};
    for (int i = 0; i < 5; i++)
        if (arenas[i]->used) TRY(arena_reserve(arenas[i]));
    lay_out(memory, copy, table, kind, shards, state);
    return 0;
}

void state_plan(struct state_memory *memory, const struct device *device, long copy,
                const struct table *table, enum state_kind kind, const struct shards *shards) {
    struct state nowhere;
    *memory = (struct state_memory){.weights = {.name = "weights", .device = device},
                                    .copy = {.name = "what products read of the weights", .device = device},
                                    .steps.name = "step counts",
                                    .gradients = {.name = "gradients", .device = device},
                                    .optimizer = {.name = "the optimiser's averages", .device = device}};
    lay_out(memory, copy, table, kind, shards, &nowhere);
}

int64_t state_planned_weights(const struct state_memory *memory) {
    return (int64_t)(memory->weights.used + memory->copy.used + memory->steps.used);
}

static const struct device *device_of(const struct arena *arena) {
    return arena->device ? arena->device : &host_device;
}

static int copy(struct arena *to, const struct arena *from) {
    if (!to->base || !from->base) return 0;
    if (device_of(from)->host) {
        device_of(to)->upload(to->base, from->base, from->size);
        return device_of(to)->wait();
    }
    device_of(from)->download(to->base, from->base, from->size);
    return device_of(from)->status();
}

int state_copy(struct state_memory *to, const struct state_memory *from) {
    TRY(copy(&to->weights, &from->weights));
    TRY(copy(&to->steps, &from->steps));
    return copy(&to->optimizer, &from->optimizer);
}

void state_free(struct state_memory *memory) {
    arena_free(&memory->weights);
    arena_free(&memory->copy);
    arena_free(&memory->steps);
    arena_free(&memory->gradients);
    arena_free(&memory->optimizer);
}
