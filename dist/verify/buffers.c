#include "dist/verify/private.h"
#include "kernels/base/status.h"

static int take(struct checker *c, int rank, int state) {
    const struct action *a = check_next(c, rank);
    struct held *h = check_buffer(c, rank, a);
    if (!h) return WRONG("there is no such buffer: the rank has %d", check_pool_size(c, rank, a->cargo));
    if (h->state != HELD_NOTHING) {
        struct action owner = {
            .act = ACT_FREE, .cargo = h->cargo, .index = h->index, .micro = h->micro, .buffer = a->buffer};
        char words[160];
        action_words(&owner, words);
        return WRONG("the buffer is taken already: nobody has come to %s", words);
    }
    check_hold(c, rank, h,
               (struct held){
                   .state = state, .cargo = a->cargo, .index = a->index, .micro = a->micro, .message = -1});
    return 0;
}

static int be_new(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    return check_find(c, rank, a->cargo, a->index, a->micro)
               ? WRONG("the rank has it already, in another buffer")
               : 0;
}

int check_post(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    TRY(take(c, rank, HELD_POSTED));
    check_buffer(c, rank, a)->message = a->message;
    c->message[a->message].started = true;
    return 0;
}

int check_receive(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    TRY(be_new(c, rank));
    struct held *h = check_buffer(c, rank, a);
    if (!h || h->state != HELD_POSTED || h->message != a->message) {
        if (c->message[a->message].post >= 0) return WRONG("its buffer is not the one that was posted");
        TRY(take(c, rank, HELD_FULL));
        h = check_buffer(c, rank, a);
    }
    h->state = HELD_FULL;
    h->message = -1;
    h->sums = c->message[a->message].sums;
    return 0;
}

int check_take(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    if (a->cargo == CARGO_NODE) return WRONG("a node is received, not made in a buffer");
    if (a->cargo == CARGO_GRADIENT && a->index != c->num_layers - 1)
        return WRONG("only the last node's gradient begins without a receive");
    TRY(be_new(c, rank));
    return take(c, rank, a->cargo == CARGO_DEPOSIT ? HELD_FULL : HELD_EMPTY); /* deposits are zeroed */
}

static void chain(struct checker *c, int message, int *last) {
    c->message[message].sent = true;
    c->message[message].before = *last;
    *last = message;
}

static int send_from_slot(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    int s = check_stage(c, rank, a);
    if (a->cargo != CARGO_NODE || a->index < -1 || a->index >= c->num_layers || c->stage[1 + a->index] != s)
        return WRONG("not an output of the chunk");
    if (!check_slot_exists(c, rank, a)) return WRONG("there is no slot %d", a->slot);
    if (check_slot(c, s, a->micro) != a->slot) return WRONG("the slot does not hold the micro-batch");
    chain(c, a->message, &c->saved[s][a->slot].message);
    return 0;
}

int check_send(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    if (a->buffer < 0) return send_from_slot(c, rank);
    struct held *h = check_buffer(c, rank, a);
    if (!h || !check_holds(h, a->cargo, a->index, a->micro) || h->state == HELD_NOTHING)
        return WRONG("the buffer does not hold it");
    if (h->state != HELD_FULL)
        return WRONG(h->state == HELD_SPENT ? "it has been handed on already"
                                            : "the buffer is not filled yet");
    if (a->cargo == CARGO_GRADIENT && a->index != c->span[a->boundary].end - 1)
        return WRONG("its backward pass is not done");
    c->message[a->message].sums = h->sums;
    if (cargo_goes_down(a->cargo)) h->state = HELD_SPENT;
    chain(c, a->message, &h->message);
    return 0;
}

int check_free(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    struct held *h = check_buffer(c, rank, a);
    if (!h || h->state == HELD_NOTHING || !check_holds(h, a->cargo, a->index, a->micro))
        return WRONG("the buffer does not hold it");
    if (h->state == HELD_POSTED) return WRONG("freed before it is received");
    if (cargo_goes_down(a->cargo) && h->state != HELD_SPENT)
        return WRONG("never drained: the gradient in it is neither used nor handed on");
    check_empty(c, rank, h);
    return 0;
}
