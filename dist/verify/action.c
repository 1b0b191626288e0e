#include "dist/verify/private.h"
#include "kernels/base/status.h"

static bool all_started(const struct verifier *c, int message) {
    for (; message >= 0; message = c->message[message].before)
        if (!c->message[message].started) return false;
    return true;
}

bool verify_ready(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    const struct held *h;
    switch (a->act) {
    case ACT_RECEIVE:
        c->message[a->message].started = true;
        return c->message[a->message].sent;
    case ACT_FREE:
        h = verify_buffer(c, rank, a);
        return !h || h->state == HELD_NOTHING || h->state == HELD_POSTED || all_started(c, h->message);
    case ACT_FORWARD:
        return !verify_activation_set_exists(c, rank, a) ||
               all_started(c, c->saved[verify_stage(c, rank, a)][a->activation_set].message);
    case ACT_SHARE:
    case ACT_NORM: /* of all ranks together */
        for (int r = 0; r < c->ranks; r++) {
            bool done = a->act == ACT_SHARE ? c->shared[r] : c->normed[r];
            if (!done && (c->at[r] == c->schedule->rank[r].count || verify_next(c, r)->act != a->act))
                return false;
        }
        return true;
    default:
        return true;
    }
}

int verify_action(struct verifier *c, int rank) {
    switch (verify_next(c, rank)->act) {
    case ACT_RECEIVE:
        return verify_receive(c, rank);
    case ACT_POST:
        return verify_post(c, rank);
    case ACT_TAKE:
        return verify_take(c, rank);
    case ACT_FORWARD:
        return verify_forward(c, rank);
    case ACT_PROJECT:
        return verify_project(c, rank);
    case ACT_BACKWARD:
        return verify_backward(c, rank);
    case ACT_UNPROJECT:
        return verify_unproject(c, rank);
    case ACT_SEND:
        return verify_send(c, rank);
    case ACT_FREE:
        return verify_free(c, rank);
    case ACT_SHARE:
        return verify_share(c, rank);
    case ACT_NORM:
        return verify_norm(c, rank);
    case ACT_REDUCE:
    case ACT_FINISH:
    case ACT_UPDATE:
    case ACT_GATHER:
    case ACT_GATHERED:
        return verify_bucket(c, rank);
    default:
        return verify_wrong(c, rank, c->at[rank], "there is no such action");
    }
}

static int verify_end_of_rank(const struct verifier *c, int rank) {
    for (int kind = 0; kind < 2; kind++)
        for (int b = 0; b < (kind ? c->schedule->narrow_blocks : c->schedule->blocks)[rank]; b++) {
            const struct held *h = (kind ? c->narrow_blocks : c->blocks)[rank] + b;
            if (h->state != HELD_NOTHING)
                return verify_wrong(c, rank, -1, "%s %d is never freed", kind ? "narrow block" : "block", b);
        }
    for (int s = rank; s < c->stages; s += c->ranks)
        for (int m = 0; m < c->micro_batches; m++) {
            if (c->forwards[verify_pass_index(c, s, m)] < 0)
                return verify_wrong(c, rank, -1, "no forward pass of chunk %d of micro-batch %d",
                                    s / c->ranks, m);
            if (!c->options->forward_only && c->layer[verify_pass_index(c, s, m)] != stage_bottom(c, s))
                return verify_wrong(c, rank, -1, "no whole backward pass of chunk %d of micro-batch %d",
                                    s / c->ranks, m);
        }
    if (c->options->forward_only) return 0;
    if (c->options->share && !c->shared[rank])
        return verify_wrong(c, rank, -1, "shared gradients are not summed");
    for (int b = 0; c->options->shards && b < c->options->shards[rank].buckets; b++)
        if (c->bucket[rank][b] != ACT_GATHERED)
            return verify_wrong(c, rank, -1, "bucket %d is not gathered", b);
    return 0;
}

int verify_end(const struct verifier *c) {
    for (int r = 0; r < c->ranks; r++) TRY(verify_end_of_rank(c, r));
    return 0;
}
