/* What is known of a run before its first step, without memory for weights and without MPI: which part of
 * the model every pipeline rank has, how its flat buffers are cut, and what it does in a step, as verified
 * schedules. `gdn train` and `gdn eval` make it for their own tensor index and copy, `gdn plan` for those of
 * any rank. */
#ifndef GDN_PIPELINE_H
#define GDN_PIPELINE_H

#include "dist/schedule/schedule.h"
#include "dist/layout/shard.h"
#include "dist/layout/table.h"
#include "train/config/config.h"

/* A rank's place on a mesh. */
struct partition_place {
    int copies, copy; /* of its part of the model; which it has */
    int batch_parts;  /* of each batch, of which it has one */
    int tensor_index, pipeline_index;
};

/* A rank's, of MPI's number, with these axes. */
struct partition_place partition_place_of(const int size[AXES], long rank);

/* What steps of fewer micro-batches do (train.batch_ramp). */
struct pipeline_smaller {
    int micro_batches;
    struct schedule schedule;    /* as in struct pipeline */
    struct schedule *introduced; /* [distances] */
};

/* A set of edges that is no first distances', and what its steps do. */
struct pipeline_chosen {
    struct edge_set active;
    struct schedule *schedule; /* [1 + num_smaller] as in struct pipeline, and of the smaller steps */
};

struct pipeline {
    int ranks;         /* pipeline ranks */
    int distances;     /* of the model's configuration */
    int micro_batches; /* of a data rank in a step, the largest */
    struct edges edges;
    struct span *stage;    /* [ranks·chunks] layers of all stages, in order */
    struct layout *layout; /* [ranks] of every pipeline rank; they share `stage` */
    struct table *table;   /* [ranks] */
    struct shards *shards; /* [ranks] cut for the copy */
    bool share;            /* some rank has ZONE_SHARED_… tensors */
    struct route_widths widths;

    /* [distances + 1] the edges of the first a distances; empty for an a that no step has. */
    struct edge_set *active;

    /* With all distances active, every rank's actions. */
    struct routes routes;
    struct schedule schedule;
    /* [distances] the same with only the first a distances active; empty (ranks 0) for an a that no step
     * has. */
    struct schedule *introduced;

    /* Of other numbers of micro-batches that steps have. */
    struct pipeline_smaller *smaller;
    int num_smaller;

    /* Of edges that training has come to (pipeline_choose); NULL: none. */
    struct pipeline_chosen *chosen;
    struct schedule_options options; /* by which its schedules are made, like the others */

    /* The most that any of these schedules needs. */
    int *activation_sets;        /* [ranks, chunks] sets of saved activations */
    int *blocks, *narrow_blocks; /* [ranks] */
    int *actions, messages;      /* [ranks] of their lists; and of a step */
    int raised;                  /* how often a schedule has needed more of anything than those before */
    /* [ranks] with mesh.schedule zero_bubble or zero_bubble_v: weight sets, and the layer from which on they
     * have gradients (weights.h); else 0. */
    int *weight_sets, *weights_from;
};

/* Computes it all for a place's tensor index and copy, whatever its pipeline index, for steps of
 * `micro_batches` micro-batches of a part of the batch, and, of training with train.batch_ramp, in which
 * these are the largest steps, for those of all its batches; schedules are those of training steps, or where
 * `training` is false forward-only ones, and each has been verified (dist/verify/verify.h). Not collective:
 * every rank computes the same. Free with pipeline_free; after a failure there is nothing to free.
 * GDN_INPUT for a mesh that does not fit the model, GDN_INTERNAL. */
int pipeline_create(const struct config *config, const struct partition_place *place, int micro_batches,
                    bool training, struct pipeline *out);
void pipeline_free(struct pipeline *pipeline);

/* Frees the actions of all other ranks than `rank`, for whoever executes that rank's only; −1: of all ranks
 * but in the largest steps with all distances active. What was counted stays. */
void pipeline_keep(struct pipeline *pipeline, int rank);

/* Makes steps with the edges e with has[e], in place of those chosen before, whose set and schedules are
 * freed: schedules for as many micro-batches as there are others for, verified, of which rank `rank`'s
 * actions are kept. has NULL: none are chosen. With other edges others travel together, so that fewer may
 * need more buffers than all: see `raised`, and executor_renew. Not collective: every rank comes to the same.
 * GDN_INTERNAL without memory, or where they need more activation sets than are reserved; then those before
 * stay. */
int pipeline_choose(struct pipeline *pipeline, const bool *has, int rank);

/* Makes the most that any schedule needs no less than what this one does, whose lists are whole. */
void pipeline_raise(struct pipeline *pipeline, const struct schedule *schedule);

/* The edges of the first so many distances, at most all, or those that are chosen, for steps and their schedule. */
const struct edge_set *pipeline_active(const struct pipeline *pipeline, int distances);

/* The schedule of a step of so many micro-batches with these edges, of pipeline_active(), those chosen, or NULL for all; where one
 * rank has all layers, any of the model's. NULL where there are no such steps. */
const struct schedule *pipeline_schedule(const struct pipeline *pipeline, int micro_batches,
                                         const struct edge_set *active);

#endif
