#include "train/state.h"
#include "kernels/base/status.h"

/* Called once to count and once to hand out. */
static void lay_out(struct arena *arena, const struct table *table, bool training, struct state *state) {
    size_t bytes = (size_t)table->total * sizeof(real);
    *state = (struct state){.weight = arena_take(arena, bytes)};
    state->steps = arena_take(arena, (size_t)table->rows * sizeof *state->steps);
    if (!training) return;
    state->gradient = arena_take(arena, bytes);
    state->exp_avg = arena_take(arena, bytes);
    state->exp_avg_sq = arena_take(arena, bytes);
}

int state_reserve(struct arena *arena, const struct table *table, bool training, struct state *state) {
    lay_out(arena, table, training, state);
    TRY(arena_reserve(arena));
    lay_out(arena, table, training, state);
    return 0;
}
