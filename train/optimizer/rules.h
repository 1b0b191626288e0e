/* Optimisers, one row each: what one keeps of a tensor and how it updates it. The rest (shards, checkpoints,
 * memory, plans) asks the rows of the parameter table, in which groups.h notes what the optimiser says.
 *
 * A new one is a file with its row, and a line in rules.c. */
#ifndef GDN_OPTIMIZER_RULES_H
#define GDN_OPTIMIZER_RULES_H

#include "dist/layout/table.h"
#include "kernels/ops.h"
#include "train/config/config.h"

/* Consecutive elements of one tensor, all or a part of those that a rank owns, on the device of `ops`. */
struct update {
    const struct ops *ops;
    const struct train_config *train;
    const struct row *row; /* of the tensor: its treatment has decay and betas */
    int64_t steps;         /* of the tensor, this one included */
    double lr;             /* of the tensor */
    double gscale;         /* what gradients are multiplied with */
    long count;
    real *weight, *gradient, *moment[MOMENTS]; /* [count] each; those of its moments that there are */
};

struct optimizer_rule {
    const char *name;
    /* What is kept of a tensor: at least one moment of each. */
    const struct moments *(*moments)(const struct row *row);
    /* Updates weights and moments, elements one by one: how a tensor was cut must not show. */
    void (*update)(const struct update *update);
};

extern const struct optimizer_rule optimizer_adamw;

/* The row that a run uses. */
const struct optimizer_rule *optimizer_rule_of(const struct train_config *train);

/* Adds a row, which runs use from now on: for programs beside gdn, before anything else. */
void optimizer_register(const struct optimizer_rule *rule);

#endif
