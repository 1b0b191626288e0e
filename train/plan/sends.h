/* The messages that have gone out of each buffer since it was last free: what FREE waits for. For walkers to
 * whom a message is no more than its number. Sends of own outputs from activation sets are not among them. */
#ifndef GDN_PLAN_SENDS_H
#define GDN_PLAN_SENDS_H

#include "dist/schedule/schedule.h"

struct sends {
    int buffers; /* of either kind of a rank, at most */
    int *last;   /* [ranks, 2, buffers] of blocks and narrow blocks: the message sent last, −1 */
    int *before; /* [messages] the one sent before it from the same buffer, −1 */
};

/* Of a schedule's lists, before any action. Not collective. GDN_INTERNAL without memory. */
int sends_create(const struct schedule *schedule, struct sends *out);
void sends_free(struct sends *sends);

/* A SEND was done. */
void sends_add(struct sends *sends, int rank, const struct action *send);
/* The message sent last from an action's buffer, −1; `before` leads on to the others. */
int sends_last(const struct sends *sends, int rank, const struct action *action);
/* A FREE was done. */
void sends_forget(struct sends *sends, int rank, const struct action *freed);

#endif
