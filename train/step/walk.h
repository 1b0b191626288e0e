/* A walk over a list of actions (dist/schedule/schedule.h): handlers say what an action means to whoever
 * walks, one for each kind, or one for each role, so that kinds with the same role share it. The executor
 * computes and exchanges (step.c); plans count, let time pass and write traces (train/plan/cost.c,
 * simulate.c, trace.c). Where things are at the moment, walkers note with the same code. */
#ifndef GDN_WALK_H
#define GDN_WALK_H

#include "kernels/base/status.h"
#include "train/step/locations.h"

/* Does an action; returns a status. */
typedef int action_handler(void *walker, const struct action *action);

/* Of actions that mean nothing to a walker, besides where things are. */
action_handler walk_nothing;

struct walk {
    action_handler *const *by_role; /* [ROLES]; NULL, or NULL for a role: */
    action_handler *const *by_kind; /* [ACTS] */
    void *walker;                   /* what handlers are given */
    struct locations *locations;    /* kept up to date; NULL: nobody asks for them */
};

/* Records that there is no handler for an action. */
int walk_fail(const struct action *action);

/* Does one action. A handler's failure; GDN_INTERNAL for a kind without handler. Plans have millions of
 * actions, so that this stands here, where callers' tables are known. */
static inline int walk_action(const struct walk *walk, const struct action *action) {
    action_handler *handler = NULL;
    if ((unsigned)action->act < ACTS) {
        if (walk->by_role) handler = walk->by_role[act_kinds[action->act].role];
        if (!handler && walk->by_kind) handler = walk->by_kind[action->act];
    }
    if (!handler) return walk_fail(action);
    if (walk->locations) locations_begin(walk->locations, action);
    TRY(handler(walk->walker, action));
    if (walk->locations) locations_end(walk->locations, action);
    return 0;
}

#endif
