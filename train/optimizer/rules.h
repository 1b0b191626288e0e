/* Optimisers, one row each: what one keeps of a tensor and how it updates it. The rest (shards, checkpoints,
 * memory, plans) asks the rows of the parameter table, in which groups.h notes what the optimiser says.
 *
 * A new one is a file with its row, its declaration below, and its place in rules.c. */
#ifndef GDN_OPTIMIZER_RULES_H
#define GDN_OPTIMIZER_RULES_H

#include "dist/layout/table.h"
#include "kernels/ops.h"
#include "train/config/config.h"

/* Consecutive elements of one tensor, all or a part of those that a rank owns, on the device of `ops`. */
struct update {
    const struct ops *ops;
    const struct train_config *train;
    const struct row *row; /* of the tensor: its treatment has betas */
    int64_t steps;         /* of the tensor, this one included */
    double lr;             /* of the tensor */
    double decay;          /* of the tensor at this step, to be multiplied with lr; train->cautious_decay says
                              where it holds (kernels/base/decay.h) */
    double gscale;         /* what gradients are multiplied with */
    long count;
    real *weight, *gradient, *moment[MOMENTS]; /* [count] each; those of its moments that there are */
};

/* A matrix that is updated as a whole, on the device of `ops`. */
struct matrix {
    const struct ops *ops;
    const struct train_config *train;
    const struct row *row; /* of the tensor, or the first of those joined */
    int64_t steps;
    long rows, columns;
    real *x; /* [rows, columns] */
    real *workspace;
};

struct optimizer_rule {
    const char *name;
    /* What is kept of a tensor: at least one moment of each. */
    const struct moments *(*moments)(const struct row *row);
    /* Updates weights and moments, elements one by one: how a tensor was cut must not show. */
    void (*update)(const struct update *update);

    /* The rest where some tensors are updated as whole matrices, else NULL (matrices.h has the order of
     * calls): what of a tensor is one. Of two dimensions; WHOLE_JOINED and WHOLE_HEADS where it has heads. Its
     * moments are kept as those of others, in parts. */
    enum whole (*whole)(const struct train_config *train, const struct row *row);
    /* Element by element: moments, and what a matrix is made of, in place of the gradient. */
    void (*prepare)(const struct update *update);
    /* The matrix, in place: `update` then finds its elements in place of the gradient. Shape as in memory,
     * which for row.transposed is the other way round. All ranks that have the same matrix must come to the
     * same bits. */
    void (*matrix)(const struct matrix *matrix);
    long (*workspace)(long rows, long columns); /* elements, of either orientation */
    /* Of products; also what is dealt evenly. */
    double (*flops)(const struct train_config *train, long rows, long columns);
};

extern const struct optimizer_rule optimizer_adamw, optimizer_muon;

/* The row that train.optimizer names (enum optimizer_choice), or the one that was added last. */
const struct optimizer_rule *optimizer_rule_of(const struct train_config *train);

/* Adds a row, which all runs use from now on, for programs beside gdn: before anything else of the program.
 * Returns its number. */
int optimizer_register(const struct optimizer_rule *rule);

#endif
