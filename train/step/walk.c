#include "train/step/walk.h"

int walk_nothing(void *walker, const struct action *action) {
    (void)walker, (void)action;
    return 0;
}

int walk_fail(const struct action *action) {
    return gdn_fail(GDN_INTERNAL, "the schedule is at fault: there is no action %d", (int)action->act);
}
