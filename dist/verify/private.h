/* The verifier's state: what each rank would have where, were the lists executed. It is derived from the
 * edges, the layout and the lists alone (and, for which edges are narrow, routes.projector, as the parameters
 * are). */
#ifndef GDN_VERIFY_PRIVATE_H
#define GDN_VERIFY_PRIVATE_H

#include <stdbool.h>

#include "dist/schedule/lookup.h"
#include "dist/schedule/schedule.h"

/* What a block or narrow block holds. */
struct held {
    enum {
        HELD_NOTHING,
        HELD_POSTED, /* a receive is under way */
        HELD_EMPTY,  /* taken, not written yet */
        HELD_FULL,
        HELD_SPENT, /* a gradient or source gradient that has been handed on or used up */
    } state;
    enum payload payload;
    int index, micro_batch;
    int sums;    /* edges whose gradients have been added so far */
    int message; /* of the latest send from it, from which `before` leads to earlier ones; POSTED: the
                    receive's; −1 */
};

struct message {
    int from, from_action; /* rank and action of SEND; −1 */
    int to, to_action;     /* of RECEIVE */
    int post, post_action; /* of POST; −1 */
    bool sent, started;    /* in the run: SEND done; receive begun */
    int sums;              /* that a gradient or source gradient has with it */
    int before;            /* the one sent before it from the same place; −1 */
};

/* A set of saved activations of one chunk of a rank. */
struct saved {
    int micro_batch; /* −1: none */
    int sums; /* edges whose gradients the stream's node has, where no source gradient has come for it */
    int message;
};

struct verifier {
    const struct edges *edges;
    const struct routes *routes;
    const struct layout *layout;
    const struct schedule_options *options;
    const struct schedule *schedule;
    const struct edge_set *active;
    int ranks, chunks, stages, num_layers, micro_batches;

    struct span *span; /* [stages] */
    int *stage;        /* [num_layers + 1] of node n, at 1 + n */
    int *place;        /* [edges] its place, from 1, among the gradients left at its source by later stages */
    int *total;        /* [num_layers + 1] number of these, at 1 + n */
    struct message *message;
    struct held **blocks, **narrow_blocks;                /* [ranks] [schedule.blocks[r]] */
    struct lookup *blocks_by_content, *narrow_by_content; /* [ranks] of all that hold something */
    struct saved **saved;                                 /* [stages] [schedule.activation_sets] */
    int *forwards;         /* [stages, micro-batches] activation set that FORWARD put it in, −1 before */
    int *layer;            /* [stages, micro-batches] the lowest whose backward pass is done */
    int *weights;          /* [stages, micro-batches] the lowest whose gradients of weights have it all */
    int **weight_set;      /* [ranks] [schedule.weight_sets[r]] 1 + the place in `layer` of what it is of; 0: none */
    int **bucket;          /* [ranks] [buckets] the last act on it; 0 before */
    int *in_flight;        /* [ranks] buckets being reduced */
    bool *shared, *normed; /* [ranks] SHARE and NORM done */
    int *at;               /* [ranks] next action */
};

/* Records what is wrong with a rank's action (−1: with its list); verify/wrong.c. */
int verify_wrong(const struct verifier *c, int rank, int action, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of its next action. */
#define WRONG(...) verify_wrong(c, rank, c->at[rank], __VA_ARGS__)

/* Layers of a stage's backward pass: from top down to bottom. */
static inline int stage_top(const struct verifier *c, int s) {
    return s == c->stages - 1 ? c->num_layers : c->span[s].end - 1;
}
static inline int stage_bottom(const struct verifier *c, int s) {
    return s == 0 ? -1 : c->span[s].first;
}

/* Pairs sends with receives. */
int verify_messages(struct verifier *c);

/* Whether a rank's next action can be done now. Notes where it is a receive, which has then begun. */
bool verify_ready(struct verifier *c, int rank);

/* Does a rank's next action, by the rule for its kind (verify/action.c). */
int verify_action(struct verifier *c, int rank);

/* Does a rank's next action of a kind. */
typedef int verify_rule(struct verifier *c, int rank);
verify_rule verify_post, verify_receive, verify_take, verify_send, verify_free; /* verify/buffers.c */
verify_rule verify_forward, verify_backward, verify_project, verify_unproject;  /* verify/passes.c */
verify_rule verify_weights;                                                     /* verify/weights.c */
verify_rule verify_share, verify_norm, verify_bucket;                           /* verify/buckets.c */

/* What a BACKWARD from `layer` on does to gradients of weights (verify/weights.c): fills its weight set, or
 * adds to them.
 */
int verify_backward_weights(struct verifier *c, int rank, int layer);

/* Nothing is left over. */
int verify_end(const struct verifier *c);

/* Looking things up (verify/find.c). */
const struct action *verify_next(const struct verifier *c, int rank);
int verify_stage(const struct verifier *c, int rank, const struct action *a);
/* Place of a stage's pass of a micro-batch in `forwards` and `layer`. */
int verify_pass_index(const struct verifier *c, int stage, int micro_batch);
/* How many buffers of the kind that the payload needs a rank has. */
int verify_pool_size(const struct verifier *c, int rank, enum payload payload);
/* The action's buffer; NULL where there is no such. */
struct held *verify_buffer(const struct verifier *c, int rank, const struct action *a);
bool verify_holds(const struct held *h, enum payload payload, int index, int micro_batch);
/* What a buffer holds that held nothing; another index; nothing any more. */
void verify_hold(struct verifier *c, int rank, struct held *h, struct held what);
void verify_rename(struct verifier *c, int rank, struct held *h, int index);
void verify_empty(struct verifier *c, int rank, struct held *h);
/* The rank's buffer that is in use for something; NULL where there is none. */
struct held *verify_find(const struct verifier *c, int rank, enum payload payload, int index,
                         int micro_batch);
bool verify_full(const struct verifier *c, int rank, enum payload payload, int index, int micro_batch);
/* The activation set that holds a stage's micro-batch; −1 where none does. */
int verify_activation_set(const struct verifier *c, int stage, int micro_batch);
/* How many of them a stage has. */
int verify_activation_sets(const struct verifier *c, int stage);
bool verify_activation_set_exists(const struct verifier *c, int rank, const struct action *a);
bool verify_has_node(const struct verifier *c, int rank, int node, int micro_batch);
bool verify_active(const struct verifier *c, int edge);

#endif
