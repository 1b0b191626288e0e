/* How a schedule is built:
 *   schedule/order.c    each rank's computations in order, and one order of all ranks' that could happen,
 * with schedule/fill.c     gradients of weights where ranks would wait; or schedule/by_time.c    by planned times;
 * schedule/stage.c    what each stage
 * brings in, uses and hands on, the same for every micro-batch; schedule/emit.c     the actions of each
 * computation, in that order that could happen, with schedule/hold.c     their buffers and activation sets,
 *   schedule/pool.c     handed out from pools, with
 *   schedule/lookup.c   an index of what they hold,
 *   schedule/message.c  their messages, and
 *   schedule/buckets.c  gradient buckets, each put on its list by
 *   schedule/append.c.
 * Waits are only ever put for what has come before in that one order of all ranks, so lists cannot block. */
#ifndef GDN_SCHEDULE_PRIVATE_H
#define GDN_SCHEDULE_PRIVATE_H

#include <stdbool.h>

#include "dist/schedule/lookup.h"
#include "dist/schedule/schedule.h"

/* --- Order. */

/* One computation: a stage's forward or backward pass for one micro-batch, or the gradients of weights that a
 * backward pass with a weight set has left. */
struct step {
    int rank, stage, micro_batch;
    bool backward;
    int weight_set; /* of `backward`: it fills; of `weights`: it is done from; −1 */
    bool weights;
    int begin, end; /* when, in units of a forward pass */
};

struct order {
    int ranks, steps;     /* steps of a rank, at most */
    int *count;           /* [ranks] steps of each */
    struct step *step;    /* [ranks, steps] */
    int all;              /* steps of all ranks */
    struct step **sorted; /* [all] by begin, then by rank */
};

/* weight_sets [ranks]: as in struct schedule_options. */
int order_create(int ranks, int chunks, int micro_batches, bool forward_only, const int *weight_sets,
                 struct order *out);
/* All ranks' lists, sorted; −1 without memory. */
int order_sort(struct order *order);
void order_free(struct order *order);

/* What bounds an order by time. */
struct order_limits {
    const struct stage_times *times; /* [stages]; NULL: all the same */
    const int *activation_sets;      /* [ranks] of both chunks; at least as many as there are chunks */
    const int *weight_sets;          /* [ranks]; NULL: none */
};
/* The order of a layout with one chunk a rank, or a V. GDN_INTERNAL. */
int order_by_time(const struct layout *layout, int micro_batches, bool forward_only,
                  const struct order_limits *limits, struct order *out);

enum { FORWARD_TIME = 1, INPUTS_TIME = 1, WEIGHTS_TIME = 1, BACKWARD_TIME = INPUTS_TIME + WEIGHTS_TIME };

/* A rank's list so far in one walk over its passes, in which gradients of weights wait. */
struct filling {
    struct step *step; /* the rank's list */
    int count;         /* steps in it */
    int sets;          /* micro-batches whose gradients of weights may wait */
    int from, to;      /* those that wait: from … to − 1 */
};
/* A pass that can begin at `ready` joins the list; before it what waits, as far as the rank would wait for
 * the pass, or for a set. Returns it, with its times. */
struct step *filling_add(struct filling *filling, const struct step *pass, int ready);
/* What still waits joins the list. */
void filling_end(struct filling *filling);

/* --- Stages. */

/* Something that a stage receives, makes, sends or drops for every micro-batch. Ports number the messages of
 * one micro-batch; −1: does not come from or go to another stage here; STAYS: the stage that it comes from or
 * goes to is on the same rank, which has it in a block. */
struct transfer {
    enum payload payload;
    int index;
    int in, out;
};
enum { STAYS = -2 };

struct transfers {
    int count;
    struct transfer *transfer;
};

struct stage {
    int rank, chunk;
    int first, end;           /* layers */
    bool bottom, top;         /* the first stage, the last one */
    int before, after;        /* ranks of the stages before and after */
    struct transfers arrive;  /* FORWARD: what is received: what goes on first, the stream last */
    struct transfers early;   /* sources projected from nodes received */
    struct transfers produce; /* own nodes sent, the stream first, and those of the rank's other chunk */
    struct transfers late;    /* sources projected from own nodes */
    struct transfers forget;  /* not needed on this rank after this FORWARD */
    struct transfers retire; /* forward only: stages (index) whose outputs this rank does not read after it */
    struct transfers collect;   /* BACKWARD: gradients received: those that only pass through first */
    struct transfers begin;     /* source gradients and projected sources' gradients that begin here */
    struct transfers unproject; /* edges, by descending target */
    struct transfers deliver;   /* source gradients and projected sources' gradients sent afterwards */
    struct transfers drain;     /* source gradients that end here */
    struct transfers leave;     /* nodes and projected sources not needed on this rank after this BACKWARD */
    struct transfer gradient;   /* the stream's: in from the stage after, out to the stage before */
};

struct stages {
    int count, ports;
    struct stage *stage;
};

int stages_describe(const struct edges *edges, const struct routes *routes, const struct layout *layout,
                    int num_layers, bool forward_only, struct stages *out);
void stages_free(struct stages *stages);

/* --- Lists under construction. */

struct builder {
    const struct schedule_options *options;
    struct schedule *out;
    bool full; /* no memory left; what follows does nothing */
};

/* Everything that does not apply to an action is −1. */
struct action action_blank(enum act act);
void schedule_append(struct builder *builder, int rank, struct action action);

/* All actions. */
int emit_all(const struct order *order, const struct stages *stages, struct builder *builder);

/* --- Buffers of one kind on one rank. */

/* Sends from a buffer or activation set. */
struct outgoing {
    int open; /* those whose receive has not come yet in the order of all ranks */
    int when; /* the latest time at which one of the others could begin to move; −1 */
};

struct buffer {
    enum {
        BUFFER_FREE,
        BUFFER_POSTED, /* a receive is under way */
        BUFFER_TAKEN,
        BUFFER_DONE, /* not needed, but sends may be in flight */
    } state;
    enum payload payload;
    int index, micro_batch;
    int next; /* of DONE: the one that was done after it; −1 */
    struct outgoing sends;
};

struct pool {
    int count;
    struct buffer *buffer;
    struct lookup by_content; /* of all that are not free */
    int lowest;               /* there is no free one below it */
    int oldest, newest;       /* of those that are DONE; −1: none */
};

void pool_begin(struct pool *pool);
void pool_end(struct pool *pool);

/* A free buffer with the lowest number; −1 where there is none. */
int pool_lowest(struct pool *pool);
/* The buffer that has been DONE for longest and whose sends began before `now`; −1 where there is none. */
int pool_oldest(const struct pool *pool, int now);
/* The buffer that holds something; −1 where none does. */
int pool_find(const struct pool *pool, enum payload payload, int index, int micro_batch);
/* One more buffer; −1 without memory. */
int pool_grow(struct pool *pool);
/* A free buffer is TAKEN for something. */
void pool_take(struct pool *pool, int b, enum payload payload, int index, int micro_batch);
/* What it holds is from now on that of another index. */
void pool_rename(struct pool *pool, int b, int index);
/* A buffer that was TAKEN is DONE. */
void pool_done(struct pool *pool, int b);
void pool_free(struct pool *pool, int b);

/* --- Buckets. */

/* How far a rank has come with its buckets. Buckets of shared tensors come last, otherwise in the same
 * order. */
struct syncing {
    int *queue;            /* [buckets] */
    int plain;             /* of them not shared */
    int reduced, finished; /* so far */
};

int buckets_begin(const struct builder *builder, int rank, struct syncing *out);
/* Where to cut a rank's last backward pass from `layer` down to `end` next: at the highest layer with which a
 * bucket becomes complete, or at `end`. */
int buckets_cut(const struct builder *builder, int rank, const struct syncing *sync, int layer, int end);
/* Starts the buckets that are complete once the rank's last backward pass has done `layer`. */
void buckets_after_layer(struct builder *builder, int rank, struct syncing *sync, int layer);
/* All that remains after the rank's last backward pass. */
void buckets_finish(struct builder *builder, int rank, struct syncing *sync);

#endif
