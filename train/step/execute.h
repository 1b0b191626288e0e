/* The executor: executes a pipeline rank's list of actions (dist/schedule/schedule.h) in order: forward
 * and backward passes, messages between stages, gradient sums, update. It decides only what the list
 * leaves open: the memory of each buffer, and whether loss and gradients are fit for an update (struct
 * step).
 *
 * All memory is reserved at creation: the pools of blocks and narrow blocks that lists number, and tables
 * of where a micro-batch's sources, projected sources and gradients are. */
#ifndef GDN_EXECUTE_H
#define GDN_EXECUTE_H

#include "dist/mesh/mesh.h"
#include "dist/sync/sync.h"
#include "dist/comm/transport.h"
#include "model/model.h"
#include "train/optimizer/optimizer.h"
#include "train/partition/pipeline.h"

/* What lists are executed on; all of it outlives the executor. */
struct execution {
    struct mesh *mesh;
    const struct model_config *config;
    /* Its schedules are executed, for training or evaluation as it was made. */
    const struct pipeline *pipeline;
    const struct ops *ops;
    struct model *model; /* with the pipeline's activation sets for this rank */
    long batch, length;  /* capacity of a micro-batch: rows, which are sequences or pieces (train/config/rows.h),
                            and their tokens */
    /* For training; else NULL. */
    const struct state *state;
    struct sync *sync;
    struct optimizer *optimizer;
    bool graphs; /* record passes and repeat them (recording.h): of one stage, with nothing that waits in a
                    pass */
};

struct executor;  /* opaque */
struct nan_trace; /* train/step/nan_trace.h */

/* Collective over the pipeline axis. GDN_INTERNAL without memory, GDN_INPUT where a step has more messages
 * than MPI has tags. */
int executor_create(const struct execution *execution, struct executor **out);
void executor_free(struct executor *executor);

/* Bytes reserved for messages between stages. */
long executor_memory(const struct executor *executor);
/* The same of an executor that need not exist, of any pipeline rank: of the execution only config, pipeline,
 * batch and length are looked at. Not collective. */
long executor_planned(const struct execution *execution, int pipeline_index);

/* Doubles that the ranks sum before they decide on an update: those of struct loss_sums, R_1, and how many
 * ranks saw values that are not finite. Terms that most runs do not have come last and are left out there:
 * `exits` is how many exits the model has. */
enum step_sum {
    SUM_CE,
    SUM_SPARSITY,
    SUM_ENTROPY,
    SUM_BAD,
    SUM_Z,
    SUM_ABSOLUTE,
    SUM_EXITS,
    STEP_SUMS = SUM_EXITS + MAX_EXITS
};
static inline int step_sums(const struct loss_options *options, int exits) {
    if (exits) return SUM_EXITS + exits;
    return options->z_weight > 0 || options->l1_weight > 0 ? SUM_EXITS : SUM_Z;
}

/* One batch. */
struct step {
    int64_t number;      /* steps done before it: what random choices in it follow from */
    int micro_batches;   /* as many as the pipeline has schedules for; 0: as the largest steps have */
    const int32_t *rows; /* [sequences, length + 1] this rank's part of the batch: sequences, or pieces */
    const int32_t *whole; /* the sequences that pieces are of (struct pass); NULL: there are none */
    long first;     /* number in the whole batch of the first sequence */
    long sequences; /* micro-batch i is rows i·batch … (i + 1)·batch − 1; those beyond the last one are empty:
                       passed on, but not computed */
    const struct loss_options *options;
    /* In place of `options` from this micro-batch on (loop/noise.c): other weights. NULL: none. */
    const struct loss_options *second;
    int second_from;

    const struct delta_watch *watch; /* sees the first micro-batch's connections; NULL: nobody */

    const struct head_watch *heads; /* sees logits of steps that only evaluate; NULL: nobody */

    struct nan_trace *nan_trace; /* looks at all that is computed, before it is handed on; NULL: nobody */

    /* Called at ACT_NORM with the sums below: fills in `update` and what goes with it; returns a status.
     * NULL: the step ends here in any case, when every rank's own parts of the buckets (shard.h) hold the
     * gradients' sums. */
    int (*decide)(struct step *step);
    void *context; /* for `decide` */

    /* The same on all ranks. False: the step ends with nothing updated, and another may follow. */
    bool update;
    struct rates rates; /* of the update */
    /* out: the first place where what this rank was about to hand to others was not finite, −1: none. Stages
     * in order are 0 …, for messages forward; then the last one to the first, for messages back; then
     * gradients before any sum. Before `decide`. */
    int first_bad;
    struct loss_sums sums; /* out: this rank's part, micro-batches added in index order */
    double absolute;  /* out: this rank's part of R_1 (model.md, 5), where options have an l1_weight; else 0 */
    long connections; /* out: active ones of the whole model, which sums of sparsity and entropy are over */
};

/* Whether a step has failed on this rank: others may be waiting for it, so that the job has to be ended for
 * all. False for NULL. */
bool executor_failed(const struct executor *executor);

/* [edges] Sums of each connection in the last step whose options had `each` or `effects` (model.h): this rank's
 * part, of all micro-batches. Owned by the executor. */
const struct connection_sums *executor_connections(const struct executor *executor);

/* The pipeline has come to other schedules, which may lie where those before lay, and may need more buffers
 * (pipeline_choose): then all memory is reserved anew. Between steps; what executor_connections has is gone.
 * Collective over the pipeline axis. Fails as executor_create; then the job cannot go on. */
int executor_renew(struct executor *executor);

/* Executes this rank's actions of a step with the edges options->active, all of them or up to the first
 * failure, which may be any axis's (GDN_INTERNAL: then the job cannot go on). Gradients start from zero.
 * Collective over the mesh. */
int execute(struct executor *executor, struct step *step);

#endif
