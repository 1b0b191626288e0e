/* The loss on validation data. Sequences are computed in groups whose size depends on the sequence length
 * alone and summed in double, so that neither ranks nor micro-batches change the value beyond the rounding of
 * that sum. */
#ifndef GDN_RUN_EVAL_H
#define GDN_RUN_EVAL_H

#include <stdint.h>

#include "data/sampler.h"
#include "dist/mesh.h"
#include "dist/table.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "train/config.h"

struct evaluation {
    struct model *model;     /* without what a backward pass needs */
    struct sampler *sampler; /* not owned */
    long sequences;          /* that one evaluation reads, in order; all ranks together */
    long group;              /* sequences computed at a time */
    long length;             /* tokens of a sequence */
    int vocab;
    int32_t *rows; /* [group, length + 1] */
};

/* Prepares evaluations of the first train.eval_batches · train.batch_size sequences of `sampler` (0 batches:
 * every whole sequence, each once). Reads the first group, so that unfit data is found before training
 * starts. Not collective. Free with evaluation_free. */
int evaluation_create(const struct config *config, const struct table *table, const struct state *state,
                      const struct ops *ops, struct sampler *sampler, struct evaluation *out);
void evaluation_free(struct evaluation *evaluation);

/* The mean cross entropy in nats over all tokens, the same bits on every rank. `active`: how many of the
 * distances are introduced. Collective; GDN_INPUT where a token lies outside the vocabulary. */
int evaluation_loss(struct evaluation *evaluation, const struct mesh *mesh, int active, double *loss);

#endif
