/* A run's memory, planned on its own ranks before anything is reserved. */
#ifndef GDN_MEMORY_PLAN_H
#define GDN_MEMORY_PLAN_H

#include "train/memory/memory.h"
#include "train/plan/recompute.h"

struct memory_plan {
    struct available available; /* memory for this rank */
    struct recompute *policy;   /* [num_layers] what backward passes compute again */
    double ratio;               /* memory without recomputation over memory available, the greatest of all
                                   ranks; 0: memory did not decide */
    struct memory planned;      /* of this rank */
    const char *foreground;     /* why checkpoints are saved while training waits; NULL: as configured */
};

#endif
