/* Order on channels (dist/comm/p2p.h): schedules at random are walked as devices with device communicators
 * would, where a message goes once it is its turn in the order in which its receiver begins, at both ends.
 * None gets stuck, and no buffer is waited for whose message is still held back. */
#include <stdlib.h>

#include "tests/dist/schedule/example.h"
#include "tests/support/unit.h"

struct message {
    int from, to, turn; /* its place among those between the two */
    bool given;         /* SEND is done */
    bool begun;         /* POST or RECEIVE is reached */
};

struct walk {
    const struct schedule *schedule;
    struct message *message;
    int *through; /* [ranks, ranks] messages from the first to the second whose turn has come */
    int *at;      /* [ranks] next action */
};

static bool receives(const struct action *a) {
    return a->act == ACT_RECEIVE || a->act == ACT_POST;
}

/* Turns, by the receivers' lists. */
static void find_turns(struct walk *w) {
    int ranks = w->schedule->ranks, *count = calloc((size_t)ranks, sizeof *count);
    for (int m = 0; m < w->schedule->messages; m++) w->message[m].turn = -1;
    for (int r = 0; r < ranks; r++) {
        for (int peer = 0; peer < ranks; peer++) count[peer] = 0;
        for (int i = 0; i < w->schedule->rank[r].count; i++) {
            const struct action *a = &w->schedule->rank[r].action[i];
            if (!receives(a) || w->message[a->message].turn >= 0) continue;
            w->message[a->message] = (struct message){a->peer, r, count[a->peer]++, false, false};
        }
    }
    free(count);
}

static bool sent(const struct walk *w, const struct message *m) {
    return m->given && m->turn < w->through[m->from * w->schedule->ranks + m->to];
}

/* Lets go what is given and whose turn it is. */
static void let_go(struct walk *w, int from, int to) {
    int *through = &w->through[from * w->schedule->ranks + to];
    for (int m = 0; m < w->schedule->messages; m++) {
        const struct message *it = &w->message[m];
        if (it->turn != *through || it->from != from || it->to != to || !it->given) continue;
        ++*through;
        m = -1;
    }
}

/* Whether all that was sent from what the action waits for has gone, up to the action. */
static bool is_free(const struct walk *w, int rank, const struct action *a) {
    const struct action *list = w->schedule->rank[rank].action;
    for (const struct action *s = list; s < a; s++) {
        if (s->act != ACT_SEND) continue;
        bool narrow = s->payload == PAYLOAD_PROJECTED || s->payload == PAYLOAD_PROJECTED_GRADIENT;
        bool same =
            a->act == ACT_FREE
                ? s->buffer >= 0 && s->buffer == a->buffer &&
                      narrow == (a->payload == PAYLOAD_PROJECTED || a->payload == PAYLOAD_PROJECTED_GRADIENT)
                : s->buffer < 0 && s->chunk == a->chunk && s->activation_set == a->activation_set;
        const struct message *m = &w->message[s->message];
        if (same && !(sent(w, m) && m->begun)) return false;
    }
    return true;
}

/* Does a rank's next action, if that is possible. */
static bool step(struct walk *w, int rank) {
    if (w->at[rank] == w->schedule->rank[rank].count) return false;
    const struct action *a = &w->schedule->rank[rank].action[w->at[rank]];
    struct message *m = a->message >= 0 ? &w->message[a->message] : NULL;
    if (receives(a)) m->begun = true;
    if (a->act == ACT_RECEIVE && !sent(w, m)) return false;
    if ((a->act == ACT_FREE || a->act == ACT_FORWARD || a->act == ACT_BACKWARD) && !is_free(w, rank, a))
        return false;
    if (a->act == ACT_SEND) {
        m->given = true;
        let_go(w, m->from, m->to);
    }
    w->at[rank]++;
    return true;
}

static void none_gets_stuck(void **state) {
    (void)state;
    for (unsigned n = 0; n < 500; n++) {
        struct shape shape = example_random(2, n);
        struct example e;
        example_schedule(&shape, &e);
        size_t ranks = (size_t)e.schedule.ranks;
        struct walk w = {.schedule = &e.schedule,
                         .message = calloc((size_t)e.schedule.messages + 1, sizeof *w.message),
                         .through = calloc(ranks * ranks, sizeof *w.through),
                         .at = calloc(ranks, sizeof *w.at)};
        find_turns(&w);
        for (bool moved = true; moved;) {
            moved = false;
            for (int r = 0; r < e.schedule.ranks; r++)
                while (step(&w, r)) moved = true;
        }
        for (int r = 0; r < e.schedule.ranks; r++) {
            char text[160];
            if (w.at[r] == e.schedule.rank[r].count) continue;
            example_print(&shape);
            action_text(&e.schedule.rank[r].action[w.at[r]], text);
            fail_msg("rank %d is stuck: %s", r, text);
        }
        free(w.message), free(w.through), free(w.at);
        example_free(&e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_gets_stuck)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
