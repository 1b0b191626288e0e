/* The checker's state: what each rank would have where, were the lists executed. It is derived from the
 * edges, the layout and the lists alone (and, for which edges are narrow, routes.projector, as the parameters
 * are). */
#ifndef GDN_CHECK_PRIVATE_H
#define GDN_CHECK_PRIVATE_H

#include <stdbool.h>

#include "dist/schedule/lookup.h"
#include "dist/schedule/schedule.h"

/* What a block or strip holds. */
struct held {
    enum {
        HELD_NOTHING,
        HELD_POSTED, /* a receive is under way */
        HELD_EMPTY,  /* taken, not written yet */
        HELD_FULL,
        HELD_SPENT, /* a gradient or deposit that has been handed on or used up */
    } state;
    enum cargo cargo;
    int index, micro;
    int sums;    /* edges whose gradients have been added so far */
    int message; /* of the latest send from it, from which `before` leads to earlier ones; POSTED: the
                    receive's; −1 */
};

struct message {
    int from, from_action; /* rank and action of SEND; −1 */
    int to, to_action;     /* of RECEIVE */
    int post, post_action; /* of POST; −1 */
    bool sent, started;    /* in the run: SEND done; receive begun */
    int sums;              /* that a gradient or deposit has with it */
    int before;            /* the one sent before it from the same place; −1 */
};

/* A set of saved activations of one chunk of a rank. */
struct saved {
    int micro; /* −1: none */
    int sums;  /* edges whose gradients the stream's node has, where no deposit has come for it */
    int message;
};

struct checker {
    const struct edges *edges;
    const struct routes *routes;
    const struct layout *layout;
    const struct schedule_options *options;
    const struct schedule *schedule;
    int active, ranks, chunks, stages, num_layers, micro_batches;

    struct span *span; /* [stages] */
    int *stage;        /* [num_layers + 1] of node n, at 1 + n */
    int *place;        /* [edges] its place, from 1, among the gradients left at its source by later stages */
    int *total;        /* [num_layers + 1] number of these, at 1 + n */
    struct message *message;
    struct held **blocks, **strips;               /* [ranks] [schedule.blocks[r]] */
    struct lookup *block_holders, *strip_holders; /* [ranks] of all that hold something */
    struct saved **saved;                         /* [stages] [schedule.slots] */
    int *forwards;         /* [stages, micro-batches] slot that FORWARD put it in, −1 before */
    int *layer;            /* [stages, micro-batches] the lowest whose backward pass is done */
    int **bucket;          /* [ranks] [buckets] the last act on it; 0 before */
    int *in_flight;        /* [ranks] buckets being reduced */
    bool *shared, *normed; /* [ranks] SHARE and NORM done */
    int *at;               /* [ranks] next action */
};

/* Records what is wrong with a rank's action (−1: with its list); verify/wrong.c. */
int check_wrong(const struct checker *c, int rank, int action, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of its next action. */
#define WRONG(...) check_wrong(c, rank, c->at[rank], __VA_ARGS__)

/* Layers of a stage's backward pass: from top down to bottom. */
static inline int stage_top(const struct checker *c, int s) {
    return s == c->stages - 1 ? c->num_layers : c->span[s].end - 1;
}
static inline int stage_bottom(const struct checker *c, int s) {
    return s == 0 ? -1 : c->span[s].first;
}

/* Pairs sends with receives. */
int check_messages(struct checker *c);

/* Whether a rank's next action can be done now. Notes where it is a receive, which has then begun. */
bool check_ready(struct checker *c, int rank);

/* Does a rank's next action. */
int check_action(struct checker *c, int rank);
int check_post(struct checker *c, int rank); /* verify/buffers.c */
int check_receive(struct checker *c, int rank);
int check_take(struct checker *c, int rank);
int check_send(struct checker *c, int rank);
int check_free(struct checker *c, int rank);
int check_forward(struct checker *c, int rank); /* verify/passes.c */
int check_backward(struct checker *c, int rank);
int check_project(struct checker *c, int rank);
int check_unproject(struct checker *c, int rank);
int check_share(struct checker *c, int rank); /* verify/buckets.c */
int check_norm(struct checker *c, int rank);
int check_bucket(struct checker *c, int rank);

/* Nothing is left over. */
int check_end(const struct checker *c);

/* Looking things up (verify/find.c). */
const struct action *check_next(const struct checker *c, int rank);
int check_stage(const struct checker *c, int rank, const struct action *a);
/* Place of a stage's pass of a micro-batch in `forwards` and `layer`. */
int check_pass_index(const struct checker *c, int stage, int micro);
/* How many buffers of the kind that the cargo needs a rank has. */
int check_pool_size(const struct checker *c, int rank, enum cargo cargo);
/* The action's buffer; NULL where there is no such. */
struct held *check_buffer(const struct checker *c, int rank, const struct action *a);
bool check_holds(const struct held *h, enum cargo cargo, int index, int micro);
/* What a buffer holds that held nothing; another index; nothing any more. */
void check_hold(struct checker *c, int rank, struct held *h, struct held what);
void check_rename(struct checker *c, int rank, struct held *h, int index);
void check_empty(struct checker *c, int rank, struct held *h);
/* The rank's buffer that is in use for something; NULL where there is none. */
struct held *check_find(const struct checker *c, int rank, enum cargo cargo, int index, int micro);
bool check_full(const struct checker *c, int rank, enum cargo cargo, int index, int micro);
/* The slot that holds a stage's micro-batch; −1 where none does. */
int check_slot(const struct checker *c, int stage, int micro);
bool check_slot_exists(const struct checker *c, int rank, const struct action *a);
bool check_has_node(const struct checker *c, int rank, int node, int micro);
bool check_active(const struct checker *c, int edge);

#endif
