/* A run's memory, planned on its own ranks before anything is reserved. */
#ifndef GDN_MEMORY_PLAN_H
#define GDN_MEMORY_PLAN_H

#include "train/evaluation/validation.h"
#include "train/memory/memory.h"
#include "train/partition/partition.h"
#include "train/plan/recompute.h"

struct memory_plan {
    struct available available; /* memory for this rank */
    struct recompute *policy;   /* [num_layers] what backward passes compute again */
    double ratio;               /* memory without recomputation over memory available, the greatest of all
                                   ranks; 0: memory did not decide */
    struct memory planned;      /* of this rank */
    const char *foreground;     /* why checkpoints are saved while training waits; NULL: as configured */
};

/* What is planned for. */
struct memory_planning {
    struct config *config; /* checkpoint.asynchronous auto becomes what was decided */
    const struct mesh *mesh;
    const struct device *device;
    const struct partition *part;
    const struct validation *validation; /* open, or empty: then there are no evaluations */
};

/* Finds how much memory there is, decides what is computed again, and plans all that the run will reserve on
 * this rank. Collective; memory_plan_free follows, whatever this returns. GDN_INPUT where that does not fit
 * on some rank (fit.h), GDN_INTERNAL. */
int memory_plan_create(const struct memory_planning *planning, struct memory_plan *out);
void memory_plan_free(struct memory_plan *plan);

#endif
