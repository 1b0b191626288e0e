#include "train/state.h"
#include "kernels/base/status.h"

/* Called once to count and once to hand out. */
static void lay_out(struct arena *arena, const struct table *table, bool training, long moments,
                    struct state *state) {
    size_t bytes = (size_t)table->total * sizeof(real), owned = (size_t)moments * sizeof(real);
    *state = (struct state){.weight = arena_take(arena, bytes)};
    state->steps = arena_take(arena, (size_t)table->rows * sizeof *state->steps);
    if (!training) return;
    state->gradient = arena_take(arena, bytes);
    state->exp_avg = arena_take(arena, owned);
    state->exp_avg_sq = arena_take(arena, owned);
}

int state_reserve(struct arena *arena, const struct table *table, bool training, long moments,
                  struct state *state) {
    lay_out(arena, table, training, moments, state);
    TRY(arena_reserve(arena));
    lay_out(arena, table, training, moments, state);
    return 0;
}
