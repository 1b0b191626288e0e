/* The loss on validation data. Sequences are computed in groups whose size depends on the sequence length
 * alone and summed in double, so that neither ranks nor micro-batches change the value beyond the rounding of
 * that sum. Groups go through the pipeline's stages as a step's micro-batches do, by forward-only schedules,
 * in rounds of as many as a schedule has. */
#ifndef GDN_EVALUATION_H
#define GDN_EVALUATION_H

#include <stdbool.h>
#include <stdint.h>

#include "dist/mesh/mesh.h"
#include "dist/layout/table.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "train/config/config.h"
#include "train/step/execute.h"
#include "train/memory/memory.h"
#include "train/partition/pipeline.h"
#include "train/evaluation/validation.h"

/* What is summed over a part's targets that count: nats, bytes that were predicted, and how many they are. */
enum evaluation_sum { EVALUATION_NATS, EVALUATION_BYTES, EVALUATION_COUNTED, EVALUATION_SUMS };

/* Of one set. What is not known, or before the first evaluation, is NAN. */
struct evaluation_result {
    double loss;          /* the mean cross entropy of its targets that count, in nats */
    double bits_per_byte; /* of the text that they are; NAN where that is not known */
    double counted;       /* how many these are */
};

struct evaluation {
    struct model *model; /* without what a backward pass needs */
    struct executor *executor;
    struct pipeline pipeline;            /* forward only */
    struct mesh *mesh;                   /* not owned */
    const struct validation *validation; /* not owned */
    long group;                          /* sequences computed at a time */
    long length;                         /* tokens of a sequence */
    int context, context_index;          /* ranks that share it, and which of them this is */
    int context_exchange;                /* model_part's */
    int vocab;
    bool documents;                   /* data.documents: mask */
    int32_t *rows;                    /* [groups of a round · group, length + 1] */
    int32_t *pieces; /* [groups of a round · group · 2, piece + 1] this rank's of them; NULL: whole sequences */
    double *sums; /* [parts · EVALUATION_SUMS] of an evaluation */
    struct evaluation_result *result; /* [sets] of the last one that was whole */
};

/* exp(loss): among how many equally likely tokens the model would be as unsure. */
double evaluation_perplexity(const struct evaluation_result *result);

/* GDN_INPUT where a loss is no number, by which nothing else can be told. */
int evaluation_tells(double loss);

/* Prepares evaluations on `validation`, which has a set at least, by the rank's part of the model, with
 * weights in `state` as `table` has them. Reads the first group of each part, so that unfit data is found
 * before training starts. Collective. Free with evaluation_free. */
int evaluation_create(struct mesh *mesh, const struct config *config, const struct table *table,
                      const struct state *state, const struct ops *ops, const struct validation *validation,
                      struct evaluation *out);
void evaluation_free(struct evaluation *evaluation);

/* The same without data and memory, for any mesh and for plans: how evaluations on at most `max` sequences
 * of one source are cut, and their pipeline. All else is NULL. Not collective. Free with evaluation_free,
 * whatever this returns. GDN_INPUT, GDN_INTERNAL. */
int evaluation_describe(const struct config *config, const struct partition_place *place, long max,
                        struct evaluation *out);
/* Adds to `sum` what evaluations, as described, would reserve on a rank of this layout and its table;
 * `tensor` and `context` are planned. The model counts as workspace. Not collective. GDN_INTERNAL. */
int evaluation_plan(const struct evaluation *evaluation, const struct config *config,
                    const struct layout *layout, const struct table *table, struct axis *tensor,
                    struct axis *context, struct memory *sum);
/* Adds what this one has reserved. */
void evaluation_memory(const struct evaluation *evaluation, struct memory *sum);

/* Asked on each rank before each round: whether to give up. */
typedef bool evaluation_ask(void *context);

/* Evaluates all sets: `loss` is that of the first, the same bits on every rank, as are all of
 * evaluation->result. `active`: the edges in use, one of evaluation->pipeline's sets, or where each rank has all
 * layers any. `ask` may be NULL. Collective. The
 * same on all ranks: GDN_STOPPED, and no results, where some rank was told to give up; GDN_INPUT where a
 * token lies outside the vocabulary, or no target of the first set counts. */
int evaluation_loss(struct evaluation *evaluation, const struct edge_set *active, evaluation_ask *ask,
                    void *context, double *loss);

/* Makes evaluations with the edges e with has[e] from the next one on, NULL: with all; these are the ones that
 * pipeline_active gives of its pipeline. Collective. GDN_INTERNAL, the same on all ranks; then it is as it was. */
int evaluation_choose(struct evaluation *evaluation, const bool *has);

/* evaluation_loss with the edges that were chosen, on other data, whose sets and parts are no more than this one's: a
 * part of them (validation_few). The first set's result of the last evaluation stays. */
int evaluation_loss_on(struct evaluation *evaluation, const struct validation *data, evaluation_ask *ask, void *context,
                       double *loss);

/* evaluation_loss with all exits: `heads` sees their logits and the last layer's of this rank's sequences. On the
 * cpu, where each rank has all layers. */
int evaluation_watch(struct evaluation *evaluation, const struct edge_set *active,
                     const struct head_watch *heads, double *loss);

/* evaluation_loss with what each connection does: `sums` [edges of evaluation->pipeline] over all tokens of all sets, of
 * which there are *tokens, the same bits on every rank. */
int evaluation_measure(struct evaluation *evaluation, const struct edge_set *active, struct connection_sums *sums,
                       double *tokens, double *loss);

/* A whole model on the host. */
struct evaluation_subject {
    const struct model_config *config;
    const struct table *table;
    const struct state *state; /* weights */
    const struct ops *ops;
};

/* What the loss would gain without each connection, to first order (model/delta/effect.c), on ranks that have all
 * layers each: the root mean square over the groups of all sets, the same bits on every rank. effect [edges + 1], of
 * which the last is scratch. Reserves what a training pass needs. Collective. GDN_INTERNAL without memory, or not on
 * the host. (effects.c) */
int evaluation_effects(struct evaluation *evaluation, const struct evaluation_subject *subject,
                       const struct edge_set *active, double *effect);
/* The same of layers: the mean over tokens of the angle between the stream before and after each, in parts of half a
 * turn. angle [layers + 1], of which the last is scratch. */
int evaluation_angles(struct evaluation *evaluation, const struct evaluation_subject *subject,
                      const struct edge_set *active, double *angle);

#endif
