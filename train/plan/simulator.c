#include "train/plan/simulator.h"

#include "kernels/base/status.h"

#include <math.h>
#include <stdlib.h>

int simulator_link(int rank, int axis, bool leaves, enum way way) {
    return (rank * (AXES + 1) + (leaves ? AXES : axis)) * WAYS + (int)way;
}

/* Where a rank meets the others. */
static void find_meetings(const struct actions *list, int meets[ACTS]) {
    for (int act = 0; act < ACTS; act++) meets[act] = -1;
    for (int i = 0; i < list->count; i++)
        if (act_kinds[list->action[i].act].role == ROLE_MEET) meets[list->action[i].act] = i;
}

static int no_memory(void) {
    return gdn_fail(GDN_INTERNAL, "out of memory for a simulated step");
}

/* Gives each message the queue of its two ranks, behind those of the ranks' buckets. */
static int number_queues(struct simulator *s, int *queues) {
    const struct schedule *schedule = s->schedule;
    const int ranks = schedule->ranks;
    /* [ranks] the queue to each, of the sender in hand where it is from `first` on. */
    int *to = malloc((size_t)ranks * sizeof *to);
    if (!to) return no_memory();
    for (int r = 0; r < ranks; r++) to[r] = -1;
    *queues = ranks;
    for (int r = 0; r < ranks; r++) {
        const int first = *queues;
        for (int i = 0; i < schedule->rank[r].count; i++) {
            const struct action *a = &schedule->rank[r].action[i];
            if (act_kinds[a->act].role != ROLE_SEND) continue;
            if (to[a->peer] < first) to[a->peer] = (*queues)++;
            s->message[a->message].queue = to[a->peer];
        }
    }
    free(to);
    return 0;
}

int simulator_create(const struct schedule *schedule, struct action_cost *const *cost,
                     const struct plan_machine *machine, struct simulation *out, struct simulator *s) {
    *s = (struct simulator){.schedule = schedule, .cost = cost, .machine = machine, .out = out};
    size_t ranks = (size_t)schedule->ranks, buckets = 1;
    for (size_t r = 0; r < ranks; r++)
        for (int i = 0; i < schedule->rank[r].count; i++) {
            const struct action *a = &schedule->rank[r].action[i];
            bool starts = act_kinds[a->act].role == ROLE_START;
            if (starts && (size_t)a->index >= buckets) buckets = (size_t)a->index + 1;
        }
    s->message = malloc(((size_t)schedule->messages + 1) * sizeof *s->message);
    s->clock = calloc(ranks, sizeof *s->clock);
    s->bucket = calloc(ranks * buckets, sizeof *s->bucket);
    if (!s->message || !s->clock || !s->bucket) return no_memory();
    for (size_t b = 0; b < ranks * buckets; b++) s->bucket[b] = (struct exchange){.begun = true, .done = NAN};
    for (int m = 0; m < schedule->messages; m++)
        s->message[m] = (struct message){.sent = NAN, .posted = NAN, .arrived = NAN};
    for (size_t r = 0; r < ranks; r++) {
        s->clock[r].bucket = s->bucket + r * buckets;
        find_meetings(&schedule->rank[r], s->clock[r].meets);
    }
    s->buckets = (int)buckets;
    int queues = 0;
    TRY(number_queues(s, &queues));
    TRY(sends_create(schedule, &s->sends));
    return flows_create(schedule->messages + schedule->ranks * s->buckets,
                        schedule->ranks * (AXES + 1) * WAYS, queues, &s->flows);
}

void simulator_free(struct simulator *s) {
    free(s->message);
    free(s->clock);
    free(s->bucket);
    sends_free(&s->sends);
    flows_free(&s->flows);
}
