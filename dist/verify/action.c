#include "dist/verify/private.h"
#include "kernels/base/status.h"

static bool all_started(const struct checker *c, int message) {
    for (; message >= 0; message = c->message[message].before)
        if (!c->message[message].started) return false;
    return true;
}

bool check_ready(struct checker *c, int rank) {
    const struct action *a = check_next(c, rank);
    const struct held *h;
    switch (a->act) {
    case ACT_RECEIVE:
        c->message[a->message].started = true;
        return c->message[a->message].sent;
    case ACT_FREE:
        h = check_buffer(c, rank, a);
        return !h || h->state == HELD_NOTHING || h->state == HELD_POSTED || all_started(c, h->message);
    case ACT_FORWARD:
        return !check_slot_exists(c, rank, a) ||
               all_started(c, c->saved[check_stage(c, rank, a)][a->slot].message);
    case ACT_SHARE:
    case ACT_NORM: /* of all ranks together */
        for (int r = 0; r < c->ranks; r++) {
            bool done = a->act == ACT_SHARE ? c->shared[r] : c->normed[r];
            if (!done && (c->at[r] == c->schedule->rank[r].count || check_next(c, r)->act != a->act))
                return false;
        }
        return true;
    default:
        return true;
    }
}

int check_action(struct checker *c, int rank) {
    switch (check_next(c, rank)->act) {
    case ACT_RECEIVE:
        return check_receive(c, rank);
    case ACT_POST:
        return check_post(c, rank);
    case ACT_TAKE:
        return check_take(c, rank);
    case ACT_FORWARD:
        return check_forward(c, rank);
    case ACT_PROJECT:
        return check_project(c, rank);
    case ACT_BACKWARD:
        return check_backward(c, rank);
    case ACT_UNPROJECT:
        return check_unproject(c, rank);
    case ACT_SEND:
        return check_send(c, rank);
    case ACT_FREE:
        return check_free(c, rank);
    case ACT_SHARE:
        return check_share(c, rank);
    case ACT_NORM:
        return check_norm(c, rank);
    case ACT_REDUCE:
    case ACT_FINISH:
    case ACT_UPDATE:
    case ACT_GATHER:
    case ACT_GATHERED:
        return check_bucket(c, rank);
    default:
        return check_wrong(c, rank, c->at[rank], "there is no such action");
    }
}

static int check_end_of_rank(const struct checker *c, int rank) {
    for (int kind = 0; kind < 2; kind++)
        for (int b = 0; b < (kind ? c->schedule->strips : c->schedule->blocks)[rank]; b++) {
            const struct held *h = (kind ? c->strips : c->blocks)[rank] + b;
            if (h->state != HELD_NOTHING)
                return check_wrong(c, rank, -1, "%s %d is never freed", kind ? "strip" : "block", b);
        }
    for (int s = rank; s < c->stages; s += c->ranks)
        for (int m = 0; m < c->micro_batches; m++) {
            if (c->forwards[check_pass_index(c, s, m)] < 0)
                return check_wrong(c, rank, -1, "no forward pass of chunk %d of micro-batch %d", s / c->ranks,
                                   m);
            if (!c->options->forward_only && c->layer[check_pass_index(c, s, m)] != stage_bottom(c, s))
                return check_wrong(c, rank, -1, "no whole backward pass of chunk %d of micro-batch %d",
                                   s / c->ranks, m);
        }
    if (c->options->forward_only) return 0;
    if (c->options->share && !c->shared[rank])
        return check_wrong(c, rank, -1, "shared gradients are not summed");
    for (int b = 0; c->options->shards && b < c->options->shards[rank].buckets; b++)
        if (c->bucket[rank][b] != ACT_GATHERED)
            return check_wrong(c, rank, -1, "bucket %d is not gathered", b);
    return 0;
}

int check_end(const struct checker *c) {
    for (int r = 0; r < c->ranks; r++) TRY(check_end_of_rank(c, r));
    return 0;
}
