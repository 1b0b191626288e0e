/* By what connections are judged while training goes on (train.prune.by): a row each. What is measured of a
 * connection, now and then, goes into a moving average; that, today, is what its importance comes from. */
#ifndef GDN_IMPORTANCE_H
#define GDN_IMPORTANCE_H

#include <stdbool.h>

/* What is found out of a connection at a time, the same on all ranks. */
struct pruning_sums {
    double gate, contribution; /* of a step's batch: means over tokens and gates, and over tokens */
    double effect;             /* what a loss gains without it: to first order that of a step's batch; or as it is */
};

struct importance {
    const char *words;       /* what it is called where a run is described */
    bool each, effects;      /* what a step finds out (struct loss_options) */
    bool left_out;           /* found out before changes, by leaving each connection out (leave_out.h) */
    double newest;           /* part of the newest in the average, once there are many */
    double (*measured)(const struct pruning_sums *sums); /* what is averaged */
    double (*importance)(double average, double mix);    /* mix: |mix|, 1 where the connection has none */
};

extern const struct importance importance_rows[]; /* by enum pruning_choice; of none nothing */

/* Whether steps find it out. */
static inline bool importance_of_steps(const struct importance *row) {
    return row->each || row->effects;
}

#endif
