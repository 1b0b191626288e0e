#include "train/plan/simulate.h"

#include "kernels/base/status.h"

#include <math.h>
#include <stdlib.h>

/* A message, known by its number at both ends. Times are NAN until they are known. */
struct message {
    double sent, posted; /* when either end started it */
    double arrived;
    const struct action_cost *cost;
    int sender, receiver;
    int before; /* the one sent before it from the same buffer since that was taken; −1 */
};

struct clock {
    int at; /* next action */
    double now;
    double free[PLAN_AXES];    /* when the axis's link is free again */
    double *bucket;            /* [buckets] when the sum or gather under way is done */
    bool waits;                /* for another rank */
    int share, norm;           /* where in its list it meets the other ranks; −1: nowhere */
    int *block, *narrow_block; /* [buffers] the last message sent from it; −1 */
};

struct walk {
    const struct schedule *schedule;
    struct action_cost *const *cost;
    const struct plan_machine *machine;
    struct simulation *out;
    struct message *message; /* [schedule->messages] */
    struct clock *clock;     /* [ranks] */
    double *bucket;          /* all clocks' buckets */
    int *buffer;             /* and blocks and narrow blocks */
};

static double later(double a, double b) {
    return a > b ? a : b;
}

static double transfer(const struct plan_machine *machine, const struct action_cost *cost, int axis) {
    return cost->calls[axis] * machine->latency + (double)cost->bytes[axis] / machine->bandwidth[axis];
}

/* Once both ends have started a message, its arrival is known. */
static void start_transfer(struct walk *s, struct message *m) {
    if (isnan(m->sent) || isnan(m->posted)) return;
    struct clock *sender = &s->clock[m->sender];
    double start = later(later(m->sent, m->posted), sender->free[PLAN_PIPELINE]);
    double sending = (double)m->cost->bytes[PLAN_PIPELINE] / s->machine->bandwidth[PLAN_PIPELINE];
    sender->free[PLAN_PIPELINE] = start + sending;
    m->arrived = start + sending + s->machine->latency;
    s->clock[m->sender].waits = s->clock[m->receiver].waits = false;
}

/* The message that was sent last from an action's buffer. */
static int *last_sent(const struct walk *s, int rank, const struct action *a) {
    return (payload_is_narrow(a->payload) ? s->clock[rank].narrow_block : s->clock[rank].block) + a->buffer;
}

static void send(struct walk *s, int rank, const struct action *a, const struct action_cost *cost) {
    struct message *m = &s->message[a->message];
    m->sent = s->clock[rank].now;
    m->cost = cost;
    m->sender = rank;
    m->receiver = a->peer;
    if (a->buffer >= 0) {
        int *last = last_sent(s, rank, a);
        m->before = *last;
        *last = a->message;
    }
    start_transfer(s, m);
}

static void post(struct walk *s, int rank, const struct action *a) {
    struct message *m = &s->message[a->message];
    if (!isnan(m->posted)) return;
    m->posted = s->clock[rank].now;
    start_transfer(s, m);
}

/* The rank's clock goes to `until`, waiting for something that was sent off at `sent`. */
static void wait_until(struct walk *s, int rank, double sent, double until, int axis) {
    struct clock *c = &s->clock[rank];
    struct rank_time *time = &s->out->rank[rank];
    if (until <= c->now) return;
    double from = later(c->now, sent < until ? sent : until);
    time->bubble += from - c->now;
    time->exposed[axis] += until - from;
    c->now = until;
}

/* Whether the sends from a buffer have all arrived, as FREE waits for; those since the buffer was last
 * taken. */
static bool free_buffer(struct walk *s, int rank, const struct action *freed) {
    int *last = last_sent(s, rank, freed);
    for (int i = *last; i >= 0; i = s->message[i].before) {
        const struct message *m = &s->message[i];
        if (isnan(m->arrived)) return false;
        wait_until(s, rank, m->posted, m->arrived, PLAN_PIPELINE);
    }
    *last = -1;
    return true;
}

static int meeting_place(const struct clock *c, enum act act) {
    return act == ACT_NORM ? c->norm : c->share;
}

/* NORM and SHARE need all ranks that have one in their lists; `until` is when the last one comes. */
static bool all_have_come(const struct walk *s, enum act act, double *until) {
    *until = 0;
    for (int r = 0; r < s->schedule->ranks; r++) {
        const struct clock *c = &s->clock[r];
        int place = meeting_place(c, act);
        if (place >= 0 && c->at != place) return false;
        if (place >= 0) *until = later(*until, c->now);
    }
    return true;
}

static void begin_bucket(struct walk *s, int rank, const struct action *a, const struct action_cost *cost) {
    struct clock *c = &s->clock[rank];
    double start = later(c->now, c->free[PLAN_DATA]);
    c->bucket[a->index] = c->free[PLAN_DATA] = start + transfer(s->machine, cost, PLAN_DATA);
}

static void compute(struct walk *s, int rank, const struct action_cost *cost) {
    struct clock *c = &s->clock[rank];
    struct rank_time *time = &s->out->rank[rank];
    double arithmetic = cost->flops / s->machine->flops, update = (double)cost->memory / s->machine->memory,
           sums = transfer(s->machine, cost, PLAN_TENSOR);
    time->arithmetic += arithmetic;
    time->update += update;
    time->exposed[PLAN_TENSOR] += sums;
    c->now += arithmetic + update + sums;
}

/* A sum that a rank waits for at once, on every axis that it has costs on. */
static void sum_now(struct walk *s, int rank, const struct action_cost *cost) {
    for (int axis = 0; axis < PLAN_AXES; axis++) {
        double seconds = transfer(s->machine, cost, axis);
        s->out->rank[rank].exposed[axis] += seconds;
        s->clock[rank].now += seconds;
    }
}

/* All ranks that have this action do it together, once the last one has come. */
static bool meet(struct walk *s, enum act act) {
    double until;
    if (!all_have_come(s, act, &until)) return false;
    for (int r = 0; r < s->schedule->ranks; r++) {
        struct clock *c = &s->clock[r];
        if (meeting_place(c, act) < 0) continue;
        struct action_time *time = &s->out->action[r][c->at];
        wait_until(s, r, until, until, PLAN_PIPELINE);
        time->start = c->now;
        sum_now(s, r, &s->cost[r][c->at]);
        time->end = c->now;
        c->at++;
        c->waits = false;
    }
    return true;
}

/* Does a rank's next action, or finds that it has to wait for another rank's. */
static bool advance(struct walk *s, int rank) {
    struct clock *c = &s->clock[rank];
    const struct action *a = &s->schedule->rank[rank].action[c->at];
    const struct action_cost *cost = &s->cost[rank][c->at];
    double start = c->now;
    switch (a->act) {
    case ACT_POST:
        post(s, rank, a);
        break;
    case ACT_RECEIVE:
        post(s, rank, a);
        if (isnan(s->message[a->message].arrived)) return false;
        wait_until(s, rank, s->message[a->message].sent, s->message[a->message].arrived, PLAN_PIPELINE);
        break;
    case ACT_SEND:
        send(s, rank, a, cost);
        break;
    case ACT_FREE:
        if (!free_buffer(s, rank, a)) return false;
        break;
    case ACT_SHARE:
    case ACT_NORM:
        return meet(s, a->act);
    case ACT_REDUCE:
        compute(s, rank, cost); /* sums over the tensor axis come first */
        begin_bucket(s, rank, a, cost);
        break;
    case ACT_GATHER:
        begin_bucket(s, rank, a, cost);
        break;
    case ACT_FINISH:
    case ACT_GATHERED:
        wait_until(s, rank, c->now, c->bucket[a->index], PLAN_DATA);
        break;
    default:
        compute(s, rank, cost);
        break;
    }
    s->out->action[rank][c->at] = (struct action_time){start, c->now};
    c->at++;
    return true;
}

/* The rank whose clock is furthest behind, of those that have not found that they must wait; −1: none. */
static int next_rank(const struct walk *s) {
    int next = -1;
    for (int r = 0; r < s->schedule->ranks; r++) {
        const struct clock *c = &s->clock[r];
        if (c->at == s->schedule->rank[r].count || c->waits) continue;
        if (next < 0 || c->now < s->clock[next].now) next = r;
    }
    return next;
}

static int run(struct walk *s) {
    int ranks = s->schedule->ranks;
    for (int r; (r = next_rank(s)) >= 0;) {
        s->clock[r].waits = true; /* until a message that concerns it is under way */
        if (advance(s, r)) s->clock[r].waits = false;
    }
    for (int r = 0; r < ranks; r++) {
        const struct actions *list = &s->schedule->rank[r];
        char text[160];
        if (s->clock[r].at < list->count) {
            action_text(&list->action[s->clock[r].at], text);
            return gdn_fail(GDN_INTERNAL, "the schedule stands still: pipeline rank %d waits to %s", r, text);
        }
        s->out->seconds = later(s->out->seconds, s->clock[r].now);
    }
    for (int r = 0; r < ranks; r++) s->out->rank[r].bubble += s->out->seconds - s->clock[r].now;
    return 0;
}

/* Place of a rank's only action of a kind; −1: it has none. */
static int find(const struct actions *list, enum act act) {
    for (int i = list->count; i-- > 0;)
        if (list->action[i].act == act) return i;
    return -1;
}

static bool reserve(struct walk *s) {
    const struct schedule *schedule = s->schedule;
    size_t ranks = (size_t)schedule->ranks, buckets = 1, buffers = 0;
    for (size_t r = 0; r < ranks; r++)
        for (int i = 0; i < schedule->rank[r].count; i++) {
            const struct action *a = &schedule->rank[r].action[i];
            if (a->act == ACT_REDUCE && (size_t)a->index >= buckets) buckets = (size_t)a->index + 1;
            if (a->buffer >= (int)buffers) buffers = (size_t)a->buffer + 1;
        }
    s->message = malloc(((size_t)schedule->messages + 1) * sizeof *s->message);
    s->clock = calloc(ranks, sizeof *s->clock);
    s->bucket = calloc(ranks * buckets, sizeof *s->bucket);
    s->buffer = malloc((2 * ranks * buffers + 1) * sizeof *s->buffer);
    s->out->rank = calloc(ranks, sizeof *s->out->rank);
    s->out->action = calloc(ranks, sizeof *s->out->action);
    if (!s->message || !s->clock || !s->bucket || !s->buffer || !s->out->rank || !s->out->action)
        return false;
    for (size_t i = 0; i < 2 * ranks * buffers; i++) s->buffer[i] = -1;
    for (int m = 0; m <= schedule->messages; m++)
        s->message[m] = (struct message){.sent = NAN, .posted = NAN, .arrived = NAN, .before = -1};
    for (size_t r = 0; r < ranks; r++) {
        s->clock[r].bucket = s->bucket + r * buckets;
        s->clock[r].block = s->buffer + 2 * r * buffers;
        s->clock[r].narrow_block = s->clock[r].block + buffers;
        s->out->action[r] = calloc((size_t)schedule->rank[r].count + 1, sizeof **s->out->action);
        if (!s->out->action[r]) return false;
        s->clock[r].share = find(&schedule->rank[r], ACT_SHARE);
        s->clock[r].norm = find(&schedule->rank[r], ACT_NORM);
    }
    return true;
}

int simulate(const struct schedule *schedule, struct action_cost *const *cost,
             const struct plan_machine *machine, struct simulation *out) {
    struct walk s = {.schedule = schedule, .cost = cost, .machine = machine, .out = out};
    *out = (struct simulation){.ranks = schedule->ranks};
    int status = reserve(&s) ? run(&s) : gdn_fail(GDN_INTERNAL, "out of memory for a simulated step");
    free(s.message);
    free(s.clock);
    free(s.bucket);
    free(s.buffer);
    if (status) simulation_free(out);
    return status;
}

void simulation_free(struct simulation *simulation) {
    for (int r = 0; simulation->action && r < simulation->ranks; r++) free(simulation->action[r]);
    free(simulation->action);
    free(simulation->rank);
    *simulation = (struct simulation){0};
}
