/* The executor's state, and what its files offer each other (execute.h is what it offers):
 *   create.c        creation and memory
 *   step.c          a step: the walk over its list, and the sums that are made of it
 *   packing.c       messages of another type than what is stored
 *   messages.c      handlers of messages between stages, and of the buffers that they use
 *   passes.c        handlers of forward and backward passes and of projections
 *   buckets.c       handlers of gradient sums, updates and gathers
 *   absolute.c      the term of the loss that is of weights alone
 *   finite_check.c  whether what is handed to other ranks is finite
 *   dry_run.c       the same walk on what only counts (dry_run.h)
 * Below them stand locations.h, walk.h and message_size.h, which plans use too. */
#ifndef GDN_EXECUTE_PRIVATE_H
#define GDN_EXECUTE_PRIVATE_H

#include "dist/layout/pieces.h"
#include "kernels/base/arena.h"
#include "train/step/boundary.h"
#include "train/step/execute.h"
#include "train/step/locations.h"
#include "train/step/packing.h"
#include "train/step/recording.h"
#include "train/step/walk.h"

struct dry_run; /* train/step/dry_run.h */

struct executor {
    struct execution e;
    const struct dry_run *dry;   /* only counts, and tells this one; NULL: all is done */
    const struct layout *layout; /* this rank's, with its tables */
    const struct edges *edges;
    const struct table *table;
    int micro_batches; /* of the largest step */
    int raised;        /* the pipeline's, when memory was reserved */
    bool failed;
    struct transport *transport;
    struct arena arena;     /* the host's; where that is the device, all of it */
    struct arena on_device; /* blocks, narrow blocks and sums elsewhere */
    struct arena tokens;    /* of `rows`; not among what is planned */
    long columns[PAYLOADS]; /* of what is in buffers (message_size.h) */
    struct locations locations;
    struct loss_sums *sums;                    /* [micro_batches] as passes add to them */
    struct loss_sums *found;                   /* [micro_batches] the same on the host */
    struct connection_sums *connections;       /* [edges] of all micro-batches, as passes add to them */
    struct connection_sums *found_connections; /* [edges] the same on the host */
    double *absolute;  /* where the configuration has a weight for R_1: its sum on this rank */
    double *own;       /* [looks, FINITE_SUMS] squares of what was handed to other ranks (finite_check.c) */
    double *found_own; /* the same on the host */
    int32_t *rows; /* [micro_batches·batch, length + 1] of the step, where passes cannot read the host's */
    int32_t *whole; /* [micro_batches·batch/2, 2c·length + 1] likewise, with several context ranks */
    struct boundary boundary;
    struct packing packing;
    struct recording recording; /* of passes */
    int *peer, *message;        /* [actions of the longest list] those that it receives */

    /* The step in progress. */
    struct step *step;
    const struct actions *list; /* its, or the last one's */
    int in_step;                /* micro-batches */
};

/* Sequences of a micro-batch of the step in progress, and rows of its blocks and narrow blocks. */
static inline long executor_batch(const struct executor *x, int micro_batch) {
    long left = x->step->sequences - micro_batch * x->e.batch;
    return left < 0 ? 0 : left < x->e.batch ? left : x->e.batch;
}
static inline long executor_rows(const struct executor *x, int micro_batch) {
    return executor_batch(x, micro_batch) * x->e.length;
}

/* Context ranks; and elements of the whole sequences that so many rows are pieces of (dist/layout/pieces.h). */
static inline int executor_context(const struct executor *x) {
    return x->e.mesh->axis[AXIS_CONTEXT].size;
}
static inline long executor_whole(const struct executor *x, long rows) {
    return rows / 2 * (2 * executor_context(x) * x->e.length + 1);
}

/* The action's buffer. */
static inline struct buffer *executor_buffer(const struct executor *x, const struct action *a) {
    return &x->locations.buffer[locations_owner(&x->locations, a->payload, a->buffer)];
}

/* Records that something an action needs is not on this rank. */
int executor_missing(const struct action *action, const char *what);

/* Tells the transport which messages the list receives, in the order in which it begins to. Collective over
 * the pipeline axis, with nothing under way. */
void executor_expect(struct executor *executor);

/* Creation without what passes and messages work on: only the tables, for a dry run of any pipeline rank's
 * list. Not collective. GDN_INTERNAL without memory. */
int executor_create_dry(const struct dry_run *dry, struct executor **out);

/* Handlers; of an executor. */
extern action_handler *const executor_handlers[ACTS];                                   /* by kind; step.c */
action_handler execute_post, execute_receive, execute_take, execute_send, execute_free; /* messages.c */
action_handler execute_forward, execute_backward, execute_weights, execute_project,
    execute_unproject; /* passes.c */
action_handler execute_share, execute_reduce, execute_finish, execute_update, execute_gather,
    execute_gathered;

/* Puts the gradients of R_1 where gradients start from, which is zero before; in training. Brings down the
 * sum. */
void executor_begin_absolute(struct executor *executor);
double executor_absolute(const struct executor *executor);

/* Looks, in training on several ranks, at numbers that are about to be handed to others, before they are
 * mixed with theirs: whether all are finite is known when the step waits for its losses. What a message is
 * made of, x [rows, D or width]; the gradients of a bucket, before its sum, unless they are shared; before
 * the stages' sum, those of all shared buckets. */
void executor_look_at_message(struct executor *executor, const struct action *action, const real *x);
void executor_look_at_bucket(struct executor *executor, int bucket);
void executor_look_at_shared(struct executor *executor);

/* How many looks have a place of their own: of each chunk the messages forward, then of each the messages
 * back, then the gradients. */
long executor_looks(const struct executor *executor);
/* Forgets what was seen, before a step; brings down what was seen in it: struct step, `first_bad`. */
void executor_look_begin(struct executor *executor);
int executor_first_bad(struct executor *executor);

#endif
