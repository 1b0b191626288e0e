/* A walk over a list of actions (dist/schedule/schedule.h): one handler for each kind says what an action
 * means to whoever walks. The executor computes and exchanges (step.c), the plan counts
 * (train/plan/passes.c); where things are at the moment, they note with the same code. */
#ifndef GDN_WALK_H
#define GDN_WALK_H

#include "train/step/locations.h"

/* Does an action; returns a status. */
typedef int action_handler(void *walker, const struct action *action);

/* Of kinds of action that mean nothing to a walker, besides where things are. */
action_handler walk_nothing;

struct walk {
    action_handler *const *handler; /* [ACTS] by kind */
    void *walker;                   /* what handlers are given */
    struct locations *locations;
};

/* Does one action. A handler's failure; GDN_INTERNAL for a kind without handler. */
int walk_action(const struct walk *walk, const struct action *action);

#endif
