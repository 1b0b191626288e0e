/* The state in which the actions of a schedule are written down, one computation after the other, in an order
 * of all ranks' that could happen (schedule/private.h). */
#ifndef GDN_SCHEDULE_EMIT_H
#define GDN_SCHEDULE_EMIT_H

#include "dist/schedule/private.h"

/* One message on its way. */
struct flight {
    /* The sender's, once it is sent: a buffer, or an activation set (the other: −1). */
    int buffer, activation_set;
    int stage; /* of the activation set */
    int into; /* the receiver's buffer, once its receive has begun; −1 */
    int when; /* it began; −1 */
};

/* One set of saved activations of a stage. */
struct activation_set {
    int micro_batch; /* whose; −1: free */
    struct outgoing sends;
};

struct activation_sets {
    int count;
    struct activation_set *activation_set;
};

struct emitter {
    struct builder *builder;
    const struct order *order;
    const struct stages *stages;
    struct pool *blocks, *narrow_blocks;     /* [ranks] */
    struct activation_sets *activation_sets; /* [stages] */
    struct flight *flight;                   /* [ports, micro-batches] */
    struct syncing *sync;                    /* [ranks] */

    /* In hand: */
    const struct step *step;
    const struct stage *stage;
};

/* --- schedule/hold.c */

const struct stage *emit_stage_of(const struct emitter *e, const struct step *step);
struct pool *emit_pool_of(struct emitter *e, int rank, enum payload payload);
void emit_latest(int *when, int time);
/* An action on something of `step`: the one in hand, or a later one whose receives are posted. */
struct action emit_about(const struct emitter *e, const struct step *step, enum act act, enum payload payload,
                         int index);
/* Appends to the list of the rank in hand. */
void emit_action(struct emitter *e, struct action action);
void emit_free(struct emitter *e, int rank, struct pool *pool, int b);
/* A buffer for something that the rank in hand gets; without `grow` only one there is already, else −1. */
int emit_take(struct emitter *e, enum payload payload, int index, int micro_batch, bool grow);
int emit_take_fresh(struct emitter *e, enum payload payload, int index);
/* The contents are not needed any more. */
void emit_release(struct emitter *e, enum payload payload, int index);
void emit_release_all(struct emitter *e, const struct transfers *list);
/* Which stage of the rank in hand has a node, the step's or an earlier one; of others' nodes the step's. */
int emit_own_stage(const struct emitter *e, int node);
/* The activation set that holds a stage's micro-batch; −1. */
int emit_activation_set_of(const struct emitter *e, int stage, int micro_batch);
int emit_take_activation_set(struct emitter *e);
void emit_retire(struct emitter *e, int stage);

/* --- schedule/message.c */

/* Sends what lies in a buffer, or a node from the activation set where the buffer is −1; it can go from
 * `ready` on. */
void emit_send(struct emitter *e, enum payload payload, int index, int port, int buffer, int activation_set,
               int ready);
void emit_send_held(struct emitter *e, enum payload payload, int index, int port, int ready);
/* Receives, unless it stays on the rank, and sends on what only passes through. */
void emit_receive(struct emitter *e, const struct transfer *it);
/* Posts what the rank's next step receives. */
void emit_post_next(struct emitter *e);

#endif
