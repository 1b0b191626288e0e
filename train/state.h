/* The training state's memory: flat buffers laid out by the parameter table (dist/table.h). */
#ifndef GDN_STATE_H
#define GDN_STATE_H

#include <stdbool.h>

#include "dist/table.h"
#include "kernels/base/arena.h"

struct state_memory {
    struct arena weights; /* and step counts */
    struct arena gradients, optimizer;
};

/* Reserves memory for the buffers of `state` and points them into it, all zero: weights and step counts, and
 * with `training` gradients and `moments` elements of each optimiser average (shards.moments) too. `memory`
 * is empty before. Not collective. The caller frees it with state_free, whatever this returns. Fails
 * (GDN_INTERNAL) without memory, naming what it was for. */
int state_reserve(struct state_memory *memory, const struct table *table, bool training, long moments,
                  struct state *state);
void state_free(struct state_memory *memory);

/* Counts, for plans, what state_reserve would reserve: the arenas' `used`. */
void state_plan(struct state_memory *memory, const struct table *table, bool training, long moments);

#endif
