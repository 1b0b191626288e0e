#include "dist/verify/private.h"
#include "kernels/base/status.h"

/* One end of a message, as its action has it. */
static int verify_address(struct verifier *c, int rank, int i) {
    const struct action *a = &c->schedule->rank[rank].action[i];
    if (a->message < 0 || a->message >= c->schedule->messages)
        return verify_wrong(c, rank, i, "message %d is not in [0, %d)", a->message, c->schedule->messages);
    if (a->micro_batch < 0 || a->micro_batch >= c->micro_batches)
        return verify_wrong(c, rank, i, "there is no micro-batch %d", a->micro_batch);
    if (a->chunk < 0 || a->chunk >= c->chunks)
        return verify_wrong(c, rank, i, "there is no chunk %d", a->chunk);
    if (a->boundary < 0 || a->boundary >= c->stages - 1)
        return verify_wrong(c, rank, i, "there is no boundary %d", a->boundary);
    /* Forward from stage b to b + 1, gradients from b + 1 to b. */
    bool sends = a->act == ACT_SEND, above = sends == payload_goes_down(a->payload);
    int stage = a->boundary + (above ? 1 : 0), other = a->boundary + (above ? 0 : 1);
    if (layout_turns(c->layout, a->boundary))
        return verify_wrong(c, rank, i, "both ends of boundary %d are this rank", a->boundary);
    if (rank != layout_rank_of(c->layout, stage) || a->chunk != layout_chunk_of(c->layout, stage))
        return verify_wrong(c, rank, i, "the boundary is stage %d's, which is not this chunk", stage);
    if (a->peer != layout_rank_of(c->layout, other))
        return verify_wrong(c, rank, i, "wrong peer: the other end of boundary %d is rank %d", a->boundary,
                            layout_rank_of(c->layout, other));
    return 0;
}

static int note(struct verifier *c, int rank, int i) {
    const struct action *a = &c->schedule->rank[rank].action[i];
    if (a->act != ACT_SEND && a->act != ACT_RECEIVE && a->act != ACT_POST) return 0;
    TRY(verify_address(c, rank, i));
    struct message *m = &c->message[a->message];
    if (a->act == ACT_SEND) {
        if (m->from >= 0)
            return verify_wrong(c, rank, i, "message %d is sent twice: also by rank %d, action %d",
                                a->message, m->from, m->from_action);
        m->from = rank;
        m->from_action = i;
    } else if (a->act == ACT_RECEIVE) {
        if (m->to >= 0)
            return verify_wrong(c, rank, i, "message %d is received twice: also by rank %d, action %d",
                                a->message, m->to, m->to_action);
        m->to = rank;
        m->to_action = i;
    } else {
        if (m->post_action >= 0) return verify_wrong(c, rank, i, "message %d is posted twice", a->message);
        if (m->to >= 0) return verify_wrong(c, rank, i, "posted after its receive, action %d", m->to_action);
        m->post = rank;
        m->post_action = i;
    }
    return 0;
}

static bool same(const struct action *a, const struct action *b) {
    return a->payload == b->payload && a->index == b->index && a->micro_batch == b->micro_batch &&
           a->boundary == b->boundary;
}

static int verify_pair(struct verifier *c, int k) {
    const struct message *m = &c->message[k];
    char text[160];
    if (m->from >= 0 && m->to < 0)
        return verify_wrong(c, m->from, m->from_action, "nobody receives message %d", k);
    if (m->to >= 0 && m->from < 0) return verify_wrong(c, m->to, m->to_action, "nobody sends message %d", k);
    if (m->from < 0)
        return m->post < 0 ? 0 : verify_wrong(c, m->post, m->post_action, "posted, but never received");
    const struct action *send = &c->schedule->rank[m->from].action[m->from_action];
    const struct action *receive = &c->schedule->rank[m->to].action[m->to_action];
    if (send->peer != m->to || receive->peer != m->from || !same(send, receive)) {
        action_text(receive, text);
        return verify_wrong(c, m->from, m->from_action,
                            "does not match message %d's other end at rank %d (%s)", k, m->to, text);
    }
    if (m->post_action < 0) return 0;
    const struct action *post = &c->schedule->rank[m->post].action[m->post_action];
    if (m->post == m->to && same(post, receive) && post->peer == receive->peer &&
        post->buffer == receive->buffer)
        return 0;
    action_text(receive, text);
    return verify_wrong(c, m->post, m->post_action, "does not match its receive (%s)", text);
}

int verify_messages(struct verifier *c) {
    for (int k = 0; k < c->schedule->messages; k++)
        c->message[k] = (struct message){.from = -1,
                                         .from_action = -1,
                                         .to = -1,
                                         .to_action = -1,
                                         .post = -1,
                                         .post_action = -1,
                                         .before = -1};
    for (int r = 0; r < c->ranks; r++)
        for (int i = 0; i < c->schedule->rank[r].count; i++) TRY(note(c, r, i));
    for (int k = 0; k < c->schedule->messages; k++) TRY(verify_pair(c, k));
    return 0;
}
