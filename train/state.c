#include "train/state.h"
#include "kernels/base/status.h"

/* Called once to count and once to hand out. */
static void lay_out(struct state_memory *memory, const struct table *table, bool training, long moments,
                    struct state *state) {
    size_t bytes = (size_t)table->total * sizeof(real), owned = (size_t)moments * sizeof(real);
    *state = (struct state){.weight = arena_take(&memory->weights, bytes)};
    state->steps = arena_take(&memory->weights, (size_t)table->rows * sizeof *state->steps);
    if (!training) return;
    state->gradient = arena_take(&memory->gradients, bytes);
    state->exp_avg = arena_take(&memory->optimizer, owned);
    state->exp_avg_sq = arena_take(&memory->optimizer, owned);
}

int state_reserve(struct state_memory *memory, const struct table *table, bool training, long moments,
                  struct state *state) {
    state_plan(memory, table, training, moments);
    TRY(arena_reserve(&memory->weights));
    if (training) {
        TRY(arena_reserve(&memory->gradients));
        TRY(arena_reserve(&memory->optimizer));
    }
    lay_out(memory, table, training, moments, state);
    return 0;
}

void state_plan(struct state_memory *memory, const struct table *table, bool training, long moments) {
    struct state nowhere;
    *memory = (struct state_memory){.weights.name = "weights",
                                    .gradients.name = "gradients",
                                    .optimizer.name = "the optimiser's averages"};
    lay_out(memory, table, training, moments, &nowhere);
}

void state_free(struct state_memory *memory) {
    arena_free(&memory->weights);
    arena_free(&memory->gradients);
    arena_free(&memory->optimizer);
}
