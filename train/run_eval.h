/* The loss on validation data. Sequences are computed in groups whose size depends on the sequence length
 * alone and summed in double, so that neither ranks nor micro-batches change the value beyond the rounding of
 * that sum. Groups go through the pipeline's stages as a step's micro-batches do, by forward-only schedules,
 * in rounds of as many as a schedule has. */
#ifndef GDN_RUN_EVAL_H
#define GDN_RUN_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "data/sampler.h"
#include "dist/mesh.h"
#include "dist/table.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "train/config.h"
#include "train/execute.h"
#include "train/memory.h"
#include "train/pipeline.h"

struct evaluation {
    struct model *model; /* without what a backward pass needs */
    struct executor *executor;
    struct pipeline pipeline; /* forward only */
    struct mesh *mesh;        /* not owned */
    struct sampler *sampler;  /* not owned */
    long sequences;           /* that one evaluation reads, in order; all ranks together */
    bool every;               /* these are all there are, each once; else the first of a mixture */
    long group;               /* sequences computed at a time */
    long length;              /* tokens of a sequence */
    int vocab;
    int32_t *rows; /* [groups of a round · group, length + 1] */
};

/* Prepares evaluations of the first train.eval_batches · train.batch_size sequences of `sampler`, as mixed
 * by weight (0 batches, or more than there are: every whole sequence of every source, each once) by the
 * rank's part of the model, with weights in `state` as `table` has them. Reads the first group, so that unfit
 * data is found before training starts. Collective. Free with evaluation_free. */
int evaluation_create(struct mesh *mesh, const struct config *config, const struct table *table,
                      const struct state *state, const struct ops *ops, struct sampler *sampler,
                      struct evaluation *out);
void evaluation_free(struct evaluation *evaluation);

/* The same without data and memory, for any mesh and for plans: how evaluations on `all` sequences or the
 * first of them are cut, and their pipeline. All else is NULL. Not collective. Free with evaluation_free,
 * whatever this returns. GDN_INPUT, GDN_INTERNAL. */
int evaluation_describe(const struct config *config, int data, int data_index, int tensor_index, long all,
                        struct evaluation *out);
/* Adds to `sum` what evaluations, as described, would reserve on a rank of this layout and its table;
 * `tensor` is planned. The model counts as workspace. Not collective. GDN_INTERNAL. */
int evaluation_plan(const struct evaluation *evaluation, const struct config *config,
                    const struct layout *layout, const struct table *table, struct axis *tensor,
                    struct memory *sum);
/* Adds what this one has reserved. */
void evaluation_memory(const struct evaluation *evaluation, struct memory *sum);

/* Asked on each rank before each round: whether to give up. */
typedef bool evaluation_ask(void *context);

/* The mean cross entropy in nats over all tokens, the same bits on every rank. `active`: how many of the
 * distances are introduced. `ask` may be NULL. Collective. The same on all ranks: GDN_STOPPED, and no loss,
 * where some rank was told to give up; GDN_INPUT where a token lies outside the vocabulary. */
int evaluation_loss(struct evaluation *evaluation, int active, evaluation_ask *ask, void *context,
                    double *loss);

#endif
