#include "dist/verify/private.h"
#include "kernels/base/status.h"

static bool all_started(const struct verifier *c, int message) {
    for (; message >= 0; message = c->message[message].before)
        if (!c->message[message].started) return false;
    return true;
}

/* ------------------------------------------------------------------------------------------- waits */

/* Whether a rank's next action can be done now. */
typedef bool ready_rule(struct verifier *c, int rank);

static bool at_once(struct verifier *c, int rank) {
    (void)c, (void)rank;
    return true;
}

static bool is_sent(struct verifier *c, int rank) {
    struct message *m = &c->message[verify_next(c, rank)->message];
    m->started = true;
    return m->sent;
}

static bool buffer_is_gone(struct verifier *c, int rank) {
    const struct held *h = verify_buffer(c, rank, verify_next(c, rank));
    return !h || h->state == HELD_NOTHING || h->state == HELD_POSTED || all_started(c, h->message);
}

static bool activation_set_is_gone(struct verifier *c, int rank) {
    const struct action *a = verify_next(c, rank);
    return !verify_activation_set_exists(c, rank, a) ||
           all_started(c, c->saved[verify_stage(c, rank, a)][a->activation_set].message);
}

/* All ranks have come to this kind of action, or have `done` it. */
static bool all_have_come(const struct verifier *c, int rank, const bool *done) {
    for (int r = 0; r < c->ranks; r++)
        if (!done[r] &&
            (c->at[r] == c->schedule->rank[r].count || verify_next(c, r)->act != verify_next(c, rank)->act))
            return false;
    return true;
}

static bool all_share(struct verifier *c, int rank) {
    return all_have_come(c, rank, c->shared);
}

static bool all_norm(struct verifier *c, int rank) {
    return all_have_come(c, rank, c->normed);
}

/* ------------------------------------------------------------------------------------------- rules */

static const struct {
    ready_rule *ready;
    verify_rule *verify;
} rules[ACTS] = {
    [ACT_RECEIVE] = {is_sent, verify_receive},     [ACT_POST] = {at_once, verify_post},
    [ACT_TAKE] = {at_once, verify_take},           [ACT_FORWARD] = {activation_set_is_gone, verify_forward},
    [ACT_PROJECT] = {at_once, verify_project},     [ACT_BACKWARD] = {at_once, verify_backward},
    [ACT_UNPROJECT] = {at_once, verify_unproject}, [ACT_SEND] = {at_once, verify_send},
    [ACT_WEIGHTS] = {at_once, verify_weights},     [ACT_FREE] = {buffer_is_gone, verify_free},
    [ACT_SHARE] = {all_share, verify_share},       [ACT_REDUCE] = {at_once, verify_bucket},
    [ACT_FINISH] = {at_once, verify_bucket},       [ACT_NORM] = {all_norm, verify_norm},
    [ACT_UPDATE] = {at_once, verify_bucket},       [ACT_GATHER] = {at_once, verify_bucket},
    [ACT_GATHERED] = {at_once, verify_bucket},
};

static bool is_known(const struct verifier *c, int rank) {
    unsigned act = (unsigned)verify_next(c, rank)->act;
    return act < ACTS && rules[act].verify;
}

bool verify_ready(struct verifier *c, int rank) {
    return !is_known(c, rank) || rules[verify_next(c, rank)->act].ready(c, rank);
}

int verify_action(struct verifier *c, int rank) {
    if (!is_known(c, rank)) return verify_wrong(c, rank, c->at[rank], "there is no such action");
    return rules[verify_next(c, rank)->act].verify(c, rank);
}

/* ------------------------------------------------------------------------------------------- the end */

static int verify_end_of_rank(const struct verifier *c, int rank) {
    for (int kind = 0; kind < 2; kind++)
        for (int b = 0; b < (kind ? c->schedule->narrow_blocks : c->schedule->blocks)[rank]; b++) {
            const struct held *h = (kind ? c->narrow_blocks : c->blocks)[rank] + b;
            if (h->state != HELD_NOTHING)
                return verify_wrong(c, rank, -1, "%s %d is never freed", kind ? "narrow block" : "block", b);
        }
    for (int chunk = 0; chunk < c->chunks; chunk++)
        for (int m = 0, s = layout_stage(c->layout, rank, chunk); m < c->micro_batches; m++) {
            if (c->forwards[verify_pass_index(c, s, m)] < 0)
                return verify_wrong(c, rank, -1, "no forward pass of chunk %d of micro-batch %d",
                                    chunk, m);
            if (!c->options->forward_only && c->layer[verify_pass_index(c, s, m)] != stage_bottom(c, s))
                return verify_wrong(c, rank, -1, "no whole backward pass of chunk %d of micro-batch %d",
                                    chunk, m);
            if (!c->options->forward_only && c->weights[verify_pass_index(c, s, m)] != stage_bottom(c, s))
                return verify_wrong(c, rank, -1, "gradients of weights of chunk %d lack micro-batch %d",
                                    chunk, m);
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
