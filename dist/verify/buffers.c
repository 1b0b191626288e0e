#include "dist/verify/private.h"
#include "kernels/base/status.h"

static int take(struct verifier *c, int rank, int state) {
    const struct action *a = verify_next(c, rank);
    struct held *h = verify_buffer(c, rank, a);
    if (!h) return WRONG("there is no such buffer: the rank has %d", verify_pool_size(c, rank, a->payload));
    if (h->state != HELD_NOTHING) {
        struct action owner = {.act = ACT_FREE,
                               .payload = h->payload,
                               .index = h->index,
                               .micro_batch = h->micro_batch,
                               .buffer = a->buffer};
        char text[160];
        action_text(&owner, text);
        return WRONG("the buffer is taken already: nobody has come to %s", text);
    }
    verify_hold(c, rank, h,
                (struct held){.state = state,
                              .payload = a->payload,
                              .index = a->index,
                              .micro_batch = a->micro_batch,
                              .message = -1});
    return 0;
}

static int be_new(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    return verify_find(c, rank, a->payload, a->index, a->micro_batch)
               ? WRONG("the rank has it already, in another buffer")
               : 0;
}

int verify_post(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    TRY(take(c, rank, HELD_POSTED));
    verify_buffer(c, rank, a)->message = a->message;
    c->message[a->message].started = true;
    return 0;
}

int verify_receive(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    TRY(be_new(c, rank));
    struct held *h = verify_buffer(c, rank, a);
    if (!h || h->state != HELD_POSTED || h->message != a->message) {
        if (c->message[a->message].post >= 0) return WRONG("its buffer is not the one that was posted");
        TRY(take(c, rank, HELD_FULL));
        h = verify_buffer(c, rank, a);
    }
    h->state = HELD_FULL;
    h->message = -1;
    h->sums = c->message[a->message].sums;
    return 0;
}

int verify_take(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    if (a->payload == PAYLOAD_SOURCE) return WRONG("a source is received, not made in a buffer");
    if (a->payload == PAYLOAD_STREAM_GRADIENT && a->index != c->num_layers - 1)
        return WRONG("only the last node's gradient begins without a receive");
    TRY(be_new(c, rank));
    return take(c, rank,
                a->payload == PAYLOAD_SOURCE_GRADIENT ? HELD_FULL
                                                      : HELD_EMPTY); /* source gradients are zeroed */
}

static void chain(struct verifier *c, int message, int *last) {
    c->message[message].sent = true;
    c->message[message].before = *last;
    *last = message;
}

static int send_from_activation_set(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    if (a->payload != PAYLOAD_SOURCE || a->index < -1 || a->index >= c->num_layers ||
        layout_rank_of(c->layout, c->stage[1 + a->index]) != rank)
        return WRONG("not an output of the rank's");
    int s = c->stage[1 + a->index]; /* of the chunk, or in a V of the one before */
    if (a->activation_set < 0 || a->activation_set >= verify_activation_sets(c, s))
        return WRONG("there is no activation set %d", a->activation_set);
    if (verify_activation_set(c, s, a->micro_batch) != a->activation_set)
        return WRONG("the activation set does not hold the micro-batch");
    chain(c, a->message, &c->saved[s][a->activation_set].message);
    return 0;
}

int verify_send(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    if (a->buffer < 0) return send_from_activation_set(c, rank);
    struct held *h = verify_buffer(c, rank, a);
    if (!h || !verify_holds(h, a->payload, a->index, a->micro_batch) || h->state == HELD_NOTHING)
        return WRONG("the buffer does not hold it");
    if (h->state != HELD_FULL)
        return WRONG(h->state == HELD_SPENT ? "it has been handed on already"
                                            : "the buffer is not filled yet");
    if (a->payload == PAYLOAD_STREAM_GRADIENT && a->index != c->span[a->boundary].end - 1)
        return WRONG("its backward pass is not done");
    c->message[a->message].sums = h->sums;
    if (payload_goes_down(a->payload)) h->state = HELD_SPENT;
    chain(c, a->message, &h->message);
    return 0;
}

int verify_free(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    struct held *h = verify_buffer(c, rank, a);
    if (!h || h->state == HELD_NOTHING || !verify_holds(h, a->payload, a->index, a->micro_batch))
        return WRONG("the buffer does not hold it");
    if (h->state == HELD_POSTED) return WRONG("freed before it is received");
    if (payload_goes_down(a->payload) && h->state != HELD_SPENT)
        return WRONG("never drained: the gradient in it is neither used nor handed on");
    verify_empty(c, rank, h);
    return 0;
}
