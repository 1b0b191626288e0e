/* The training state's memory: flat buffers laid out by the parameter table (dist/table.h). */
#ifndef GDN_STATE_H
#define GDN_STATE_H

#include <stdbool.h>

#include "dist/table.h"
#include "kernels/base/arena.h"

/* Reserves `arena` (named, otherwise empty) for the buffers of `state` and points them into it, all zero:
 * weights and step counts, and with `training` gradients and `moments` elements of each optimiser average
 * (shards.moments) too. Not collective. The caller frees the arena. Fails (GDN_INTERNAL) without memory,
 * naming the arena. */
int state_reserve(struct arena *arena, const struct table *table, bool training, long moments,
                  struct state *state);

#endif
