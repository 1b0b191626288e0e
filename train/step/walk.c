#include "train/step/walk.h"

#include "kernels/base/status.h"

int walk_nothing(void *walker, const struct action *action) {
    (void)walker, (void)action;
    return 0;
}

static action_handler *handler_of(const struct walk *walk, const struct action *action) {
    if ((unsigned)action->act >= ACTS) return NULL;
    action_handler *handler = walk->by_role ? walk->by_role[act_kinds[action->act].role] : NULL;
    return handler || !walk->by_kind ? handler : walk->by_kind[action->act];
}

int walk_action(const struct walk *walk, const struct action *action) {
    action_handler *handler = handler_of(walk, action);
    if (!handler)
        return gdn_fail(GDN_INTERNAL, "the schedule is at fault: there is no action %d", (int)action->act);
    if (walk->locations) locations_begin(walk->locations, action);
    TRY(handler(walk->walker, action));
    if (walk->locations) locations_end(walk->locations, action);
    return 0;
}
