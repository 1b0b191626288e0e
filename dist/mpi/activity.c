#include "dist/mpi/activity.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What others read, one cache line or two, and what is the thread's own. */
struct place {
    _Alignas(64) atomic_int phase;
    _Atomic int64_t step;
    _Atomic uint64_t begun, moves;
    _Atomic(const void *) action;
    _Atomic(activity_describe *) describe;
    _Atomic(const char *) where, call;
    _Atomic int64_t count;
    atomic_int peer;

    int depth; /* of pairs of enter and leave */
    double waited, entered;
};

static struct place places[ACTIVITIES];
static _Thread_local struct place *own = &places[ACTIVITY_MAIN];

#define PUT(field, value) atomic_store_explicit(&own->field, value, memory_order_relaxed)
#define GET(place, field) atomic_load_explicit(&(place)->field, memory_order_relaxed)

/* Its only writer needs no atomic addition. */
static void moved(void) {
    PUT(moves, GET(own, moves) + 1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void activity_renew(void) {
    PUT(begun, GET(own, begun) + 1);
    moved();
}

void activity_phase(enum run_phase phase, int64_t step) {
    activity_renew(); /* first: no look is to see the new phase with the time of the one before */
    PUT(phase, (int)phase);
    PUT(step, step);
    own->waited = 0;
}

void activity_action(const void *action, activity_describe *describe) {
    PUT(describe, describe);
    PUT(action, action);
    moved();
}

void activity_enter(const char *where, const char *call, int64_t count, int peer) {
    if (own->depth++) return;
    PUT(call, call);
    PUT(count, count);
    PUT(peer, peer);
    PUT(where, where);
    moved();
    own->entered = seconds();
}

void activity_leave(void) {
    if (--own->depth) return;
    own->waited += seconds() - own->entered;
    PUT(where, NULL);
    moved();
}

double activity_waited(void) {
    return own->waited;
}

void activity_of_writer(void) {
    own = &places[ACTIVITY_WRITER];
}

void activity_read(enum activity_thread thread, struct activity *out) {
    const struct place *place = &places[thread];
    *out = (struct activity){
        .phase = (enum run_phase)GET(place, phase),
        .step = GET(place, step),
        .begun = GET(place, begun),
        .moves = GET(place, moves),
        .action = GET(place, action),
        .describe = GET(place, describe),
        .where = GET(place, where),
        .call = GET(place, call),
        .count = GET(place, count),
        .peer = GET(place, peer),
    };
}

const char *activity_phase_name(enum run_phase phase) {
    static const char *const names[PHASES] = {"idle", "start", "step", "evaluation", "checkpoint", "end"};
    return phase < PHASES ? names[phase] : "?";
}

void activity_wait_text(const struct activity *p, char text[ACTIVITY_TEXT]) {
    char count[40] = "", peer[40] = "";
    *text = 0;
    if (!p->where || !p->call) return;
    if (p->count >= 0) snprintf(count, sizeof count, " of %lld elements", (long long)p->count);
    if (p->peer >= 0) snprintf(peer, sizeof peer, " with its rank %d", p->peer);
    if (!strcmp(p->where, "mesh"))
        snprintf(text, ACTIVITY_TEXT, "the %s of all ranks", p->call);
    else if (!strcmp(p->where, "device"))
        snprintf(text, ACTIVITY_TEXT, "the %s of the device", p->call);
    else
        snprintf(text, ACTIVITY_TEXT, "the %s axis's %s%s%s", p->where, p->call, count, peer);
}

void activity_action_text(const struct activity *p, char text[ACTIVITY_TEXT]) {
    *text = 0;
    if (p->action && p->describe) p->describe(p->action, text);
}
