#include "train/plan/simulate.h"

#include "kernels/base/status.h"
#include "train/plan/simulator.h"
#include "train/step/walk.h"

#include <math.h>
#include <stdlib.h>

static double later(double a, double b) {
    return a > b ? a : b;
}

/* Once both ends have started a message it is on its way, behind those before it between the two. */
static void start_transfer(struct simulator *s, const struct message *m) {
    if (isnan(m->sent) || isnan(m->posted)) return;
    const struct plan_machine *machine = s->machine;
    const int axis = AXIS_PIPELINE;
    const bool leaves = machine->leaves[axis] && m->sender / machine->stages != m->receiver / machine->stages;
    const double bandwidth = machine->leaves[axis] && !leaves ? machine->inside : machine->bandwidth[axis];
    flows_add(&s->flows, (int)(m - s->message),
              (struct flow){.link = {simulator_link(m->sender, axis, leaves, WAY_OUT),
                                     simulator_link(m->receiver, axis, leaves, WAY_IN)},
                            .queue = m->queue,
                            .weight = 1,
                            .ready = later(m->sent, m->posted),
                            .work = (double)m->cost->bytes[axis] / bandwidth});
}

/* The rank's clock goes to `until`, waiting for something that was sent off at `sent`. */
static void wait_until(struct simulator *s, int rank, double sent, double until, int axis) {
    struct clock *c = &s->clock[rank];
    struct rank_time *time = &s->out->rank[rank];
    if (until <= c->now) return;
    double from = later(c->now, sent < until ? sent : until);
    time->bubble += from - c->now;
    time->exposed[axis] += until - from;
    c->now = until;
}

/* Arithmetic, and an exchange that a rank waits for at once, on every axis that it has costs on. */
static void spend_now(struct simulator *s, int rank, const struct action_cost *cost) {
    double arithmetic = cost->flops / s->machine->flops;
    s->out->rank[rank].arithmetic += arithmetic;
    s->clock[rank].now += arithmetic;
    for (int axis = 0; axis < axes_count(); axis++) {
        double seconds = action_transfer(s->machine, cost, axis);
        s->out->rank[rank].exposed[axis] += seconds;
        s->clock[rank].now += seconds;
    }
}

/* A rank's next action is done. */
static void end_action(struct simulator *s, int rank, double start) {
    struct clock *c = &s->clock[rank];
    s->out->action[rank][c->at++] = (struct action_time){start, c->now};
    c->waits = false;
}

/* ------------------------------------------------------------------------------------------- handlers */

/* Of the rank in hand. One that finds that its action cannot be done yet says so by `waits`. */

static struct clock *clock_of(struct simulator *s) {
    return &s->clock[s->rank];
}

static const struct action_cost *cost_of(struct simulator *s) {
    return &s->cost[s->rank][clock_of(s)->at];
}

static int compute(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    struct clock *c = clock_of(s);
    struct rank_time *time = &s->out->rank[s->rank];
    const struct action_cost *cost = cost_of(s);
    double arithmetic = cost->flops / s->machine->flops, update = (double)cost->memory / s->machine->memory,
           sums = action_waited(s->machine, cost, AXIS_TENSOR),
           pieces = action_waited(s->machine, cost, AXIS_CONTEXT);
    (void)a;
    time->arithmetic += arithmetic;
    time->update += update;
    time->exposed[AXIS_TENSOR] += sums;
    time->exposed[AXIS_CONTEXT] += pieces;
    c->now += arithmetic + update + sums + pieces;
    return 0;
}

static int post(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    struct message *m = &s->message[a->message];
    if (!isnan(m->posted)) return 0;
    m->posted = clock_of(s)->now;
    start_transfer(s, m);
    return 0;
}

static int receive(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    const struct message *m = &s->message[a->message];
    post(s, a);
    if (isnan(m->arrived))
        clock_of(s)->waits = true;
    else
        wait_until(s, s->rank, m->sent, m->arrived, AXIS_PIPELINE);
    return 0;
}

static int send(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    struct message *m = &s->message[a->message];
    compute(s, a); /* what compressing takes */
    m->sent = clock_of(s)->now;
    m->cost = cost_of(s);
    m->sender = s->rank;
    m->receiver = a->peer;
    sends_add(&s->sends, s->rank, a);
    start_transfer(s, m);
    return 0;
}

/* All sends from the buffer have to have arrived. */
static int free_buffer(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    for (int i = sends_last(&s->sends, s->rank, a); i >= 0; i = s->sends.before[i]) {
        const struct message *m = &s->message[i];
        if (isnan(m->arrived)) {
            clock_of(s)->waits = true;
            return 0;
        }
        wait_until(s, s->rank, m->posted, m->arrived, AXIS_PIPELINE);
    }
    sends_forget(&s->sends, s->rank, a);
    return 0;
}

/* Whether all ranks that have such an action have come to it; `until` is when the last one comes. */
static bool all_have_come(const struct simulator *s, enum act act, double *until) {
    *until = 0;
    for (int r = 0; r < s->schedule->ranks; r++) {
        const struct clock *c = &s->clock[r];
        int place = c->meets[act];
        if (place >= 0 && c->at != place) return false;
        if (place >= 0) *until = later(*until, c->now);
    }
    return true;
}

/* All ranks that have this action do it together, once the last one has come. */
static int meet(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    double until;
    clock_of(s)->waits = true;
    if (!all_have_come(s, a->act, &until)) return 0;
    for (int r = 0; r < s->schedule->ranks; r++) {
        struct clock *c = &s->clock[r];
        if (c->meets[a->act] < 0) continue;
        wait_until(s, r, until, until, AXIS_PIPELINE);
        double start = c->now;
        spend_now(s, r, &s->cost[r][c->at]);
        end_action(s, r, start);
    }
    return 0;
}

static void begin_exchange(struct simulator *s, struct exchange *exchange) {
    exchange->flow.ready = clock_of(s)->now;
    exchange->begun = true;
    flows_add(&s->flows, s->schedule->messages + (int)(exchange - s->bucket), exchange->flow);
}

/* An exchange between copies begins, once those before it are done: a sum within groups and then across them,
 * a gather the other way round. Only what goes across takes the way out of the node. What it costs besides is
 * done before it. */
static int start_bucket(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    struct exchange *exchange = &clock_of(s)->bucket[a->index];
    compute(s, a);
    const struct action_cost *cost = cost_of(s);
    const double inside = action_within(s->machine, cost), before = a->act == ACT_GATHER ? 0 : inside;
    const int calls = cost->calls[AXIS_COPIES] - (cost->within > 0);
    const bool leaves = s->machine->leaves[AXIS_COPIES];
    *exchange = (struct exchange){.done = NAN};
    exchange->flow = (struct flow){.link = {simulator_link(s->rank, AXIS_COPIES, leaves, WAY_OUT),
                                            simulator_link(s->rank, AXIS_COPIES, leaves, WAY_IN)},
                                   .queue = s->rank,
                                   .weight = plan_machine_parts(s->machine),
                                   .lead = before + calls * s->machine->latency,
                                   .work = action_across(s->machine, cost),
                                   .tail = inside - before};
    if (!s->machine->synchronous) begin_exchange(s, exchange);
    return 0;
}

static int wait_for_bucket(void *simulator, const struct action *a) {
    struct simulator *s = simulator;
    struct clock *c = clock_of(s);
    struct exchange *exchange = &c->bucket[a->index];
    if (!exchange->begun) begin_exchange(s, exchange);
    if (isnan(exchange->done))
        c->waits = true;
    else
        wait_until(s, s->rank, c->now, exchange->done, AXIS_COPIES);
    return 0;
}

static action_handler *const handlers[ROLES] = {
    [ROLE_PASS] = compute,    [ROLE_TAKE] = compute,       [ROLE_POST] = post,
    [ROLE_RECEIVE] = receive, [ROLE_SEND] = send,          [ROLE_FREE] = free_buffer,
    [ROLE_MEET] = meet,       [ROLE_START] = start_bucket, [ROLE_WAIT] = wait_for_bucket,
    [ROLE_UPDATE] = compute,
};

/* ------------------------------------------------------------------------------------------- the run */

/* Does a rank's next action, or finds that it has to wait until a transfer that concerns it is done, or
 * another rank comes. */
static int advance(struct simulator *s, int rank) {
    const struct walk walk = {.by_role = handlers, .walker = s};
    struct clock *c = &s->clock[rank];
    int at = c->at;
    double start = c->now;
    s->rank = rank;
    TRY(walk_action(&walk, &s->schedule->rank[rank].action[at]));
    if (!c->waits && c->at == at) end_action(s, rank, start); /* those who meet have all done it */
    return 0;
}

/* The rank whose clock is furthest behind, of those that have not found that they must wait; −1: none. */
static int next_rank(const struct simulator *s) {
    int next = -1;
    for (int r = 0; r < s->schedule->ranks; r++) {
        const struct clock *c = &s->clock[r];
        if (c->at == s->schedule->rank[r].count || c->waits) continue;
        if (next < 0 || c->now < s->clock[next].now) next = r;
    }
    return next;
}

/* A message or an exchange between copies is done. */
static void arrive(struct simulator *s, int flow) {
    const int bucket = flow - s->schedule->messages;
    if (bucket >= 0) {
        s->bucket[bucket].done = s->flows.now;
        s->clock[bucket / s->buckets].waits = false;
        return;
    }
    struct message *m = &s->message[flow];
    m->arrived = s->flows.now + s->machine->latency;
    s->clock[m->sender].waits = s->clock[m->receiver].waits = false;
}

/* What comes first, again and again: what ranks do, or what becomes of transfers. */
static int run(struct simulator *s) {
    int ranks = s->schedule->ranks;
    for (;;) {
        const int r = next_rank(s);
        const double next = flows_next(&s->flows);
        if (r < 0 && isinf(next)) break;
        if (r >= 0 && (isinf(next) || s->clock[r].now < next)) {
            TRY(advance(s, r));
            continue;
        }
        const int done = flows_step(&s->flows);
        if (done >= 0) arrive(s, done);
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

/* What a simulation tells, of nothing yet. */
static int reserve(const struct schedule *schedule, struct simulation *out) {
    const size_t ranks = (size_t)schedule->ranks;
    out->rank = calloc(ranks, sizeof *out->rank);
    out->action = calloc(ranks, sizeof *out->action);
    bool good = out->rank && out->action;
    for (size_t r = 0; good && r < ranks; r++) {
        out->action[r] = calloc((size_t)schedule->rank[r].count + 1, sizeof **out->action);
        good = out->action[r] != NULL;
    }
    return good ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for a simulated step");
}

int simulate(const struct schedule *schedule, struct action_cost *const *cost,
             const struct plan_machine *machine, struct simulation *out) {
    struct simulator s;
    *out = (struct simulation){.ranks = schedule->ranks};
    int status = simulator_create(schedule, cost, machine, out, &s);
    if (!status) status = reserve(schedule, out);
    if (!status) status = run(&s);
    simulator_free(&s);
    if (status) simulation_free(out);
    return status;
}

void simulation_free(struct simulation *simulation) {
    for (int r = 0; simulation->action && r < simulation->ranks; r++) free(simulation->action[r]);
    free(simulation->action);
    free(simulation->rank);
    *simulation = (struct simulation){0};
}
