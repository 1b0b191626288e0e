/* A simulated step while it runs, for simulate.c alone: what ranks, messages and exchanges are at. */
#ifndef GDN_PLAN_SIMULATOR_H
#define GDN_PLAN_SIMULATOR_H

#include "train/plan/action_cost.h"
#include "train/plan/flows.h"
#include "train/plan/sends.h"

#include <stdbool.h>

/* A message, known by its number at both ends. Times are NAN until they are known. */
struct message {
    double sent, posted; /* when either end started it */
    double arrived;
    const struct action_cost *cost;
    int sender, receiver;
    int queue; /* of flows.h: that of its two ranks */
};

/* A sum or gather between copies that has begun, or, where nothing moves by itself, is to begin when it is
 * waited for. */
struct exchange {
    struct flow flow;
    bool begun;
    double done; /* NAN until it is */
};

struct clock {
    int at; /* next action */
    double now;
    struct exchange *bucket; /* [buckets] the last of each */
    bool waits;              /* for another rank: its next action cannot be done yet */
    int meets[ACTS]; /* where in its list it meets the other ranks, by kind of action; −1: nowhere */
};

struct simulation; /* simulate.h */

struct simulator {
    const struct schedule *schedule;
    struct action_cost *const *cost;
    const struct plan_machine *machine;
    struct simulation *out;
    struct message *message; /* [schedule->messages] */
    struct clock *clock;     /* [ranks] */
    struct exchange *bucket; /* [ranks][buckets] */
    int buckets;
    struct flows flows; /* messages by their number, then each rank's buckets */
    struct sends sends;

    int rank; /* in hand: whose next action is done */
};

/* A rank's links, of flows.h: each axis has its own way out and way in; those that leave the node have one of
 * each for all. */
enum way { WAY_OUT, WAY_IN, WAYS };
int simulator_link(int rank, int axis, bool leaves, enum way way);

/* Everything before the first action; GDN_INTERNAL without memory. To be freed in any case. */
int simulator_create(const struct schedule *schedule, struct action_cost *const *cost,
                     const struct plan_machine *machine, struct simulation *out, struct simulator *s);
void simulator_free(struct simulator *s);

#endif
