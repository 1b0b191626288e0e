#include "dist/schedule/private.h"

#include <stdlib.h>

struct action action_blank(enum act act) {
    return (struct action){.act = act,
                           .chunk = -1,
                           .micro_batch = -1,
                           .activation_set = -1,
                           .weight_set = -1,
                           .layer = -1,
                           .end = -1,
                           .index = -1,
                           .boundary = -1,
                           .peer = -1,
                           .buffer = -1,
                           .message = -1};
}

void schedule_append(struct builder *builder, int rank, struct action action) {
    struct actions *list = &builder->out->rank[rank];
    int n = list->count;
    if ((n & (n - 1)) == 0) { /* grows at powers of two */
        struct action *more =
            builder->full ? NULL : realloc(list->action, (size_t)(n ? 2 * n : 1) * sizeof *more);
        if (!more) {
            builder->full = true;
            return;
        }
        list->action = more;
    }
    list->action[list->count++] = action;
}
