/* The training state's memory: flat buffers laid out by the parameter table (dist/layout/table.h). */
#ifndef GDN_STATE_H
#define GDN_STATE_H

#include <stdbool.h>

#include "dist/layout/shard.h"
#include "kernels/base/arena.h"

/* What of the state there is: weights and step counts; with the optimiser's averages, what a checkpoint
 * holds; with gradients, what training works on. */
enum state_kind { STATE_WEIGHTS, STATE_SAVED, STATE_TRAINING };

struct state_memory {
    struct arena weights, copy, gradients, optimizer;
    struct arena steps; /* always the host's */
};

/* Reserves memory of `device` (NULL: the host) for the buffers of `state` and points them into it, all zero;
 * `copy` is the bytes of each weight's copy for products (kernels/ops.h, ops_weight_copy), 0: none;
 * `shards` (NULL for weights alone) tell how much of each moment. `memory` is empty before. Not collective.
 * The caller frees it with state_free, whatever this returns. Fails (GDN_INTERNAL) without memory, naming
 * what it was for. */
int state_reserve(struct state_memory *memory, const struct device *device, long copy,
                  const struct table *table, enum state_kind kind, const struct shards *shards,
                  struct state *state);
void state_free(struct state_memory *memory);

/* Copies weights, step counts and moments between the memory of two states of one table and shards, as far as
 * both have it; at most one lies on a device. Waits. Returns the device's status. */
int state_copy(struct state_memory *to, const struct state_memory *from);

/* Counts, for plans, what state_reserve would reserve: the arenas' `used`. */
void state_plan(struct state_memory *memory, const struct device *device, long copy,
                const struct table *table, enum state_kind kind, const struct shards *shards);

/* Bytes of weights, with their copy and step counts, that were so counted. */
int64_t state_planned_weights(const struct state_memory *memory);

#endif
