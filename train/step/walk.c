#include "train/step/walk.h"

#include "kernels/base/status.h"

int walk_nothing(void *walker, const struct action *action) {
    (void)walker, (void)action;
    return 0;
}

int walk_action(const struct walk *walk, const struct action *action) {
    action_handler *handler = (unsigned)action->act < ACTS ? walk->handler[action->act] : NULL;
    if (!handler)
        return gdn_fail(GDN_INTERNAL, "the schedule is at fault: there is no action %d", (int)action->act);
    locations_begin(walk->locations, action);
    TRY(handler(walk->walker, action));
    locations_end(walk->locations, action);
    return 0;
}
