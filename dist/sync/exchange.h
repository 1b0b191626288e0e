/* An exchange of messages of any lengths between the ranks of an axis, with nothing else under way on it.
 * What one rank sends to another arrives in order. Private to dist/. Functions return a status. */
#ifndef GDN_EXCHANGE_H
#define GDN_EXCHANGE_H

#include "dist/comm/async_op.h"

struct exchange {
    struct axis *axis;
    struct async_op *op; /* [room] `count` of them under way; none over a device communicator */
    int count, room;
};

/* Begins one of at most `messages` of this rank's, sent and received; `what` is for failures and hangs. The
 * struct begins as zeros and its axis, and may be used again after exchange_end. Collective over the axis. */
int exchange_begin(struct exchange *exchange, int messages, const char *what);
/* x [count] to a peer, or from it; nothing where count is 0, which both know. */
int exchange_send(struct exchange *exchange, const real *x, long count, int peer);
int exchange_receive(struct exchange *exchange, real *x, long count, int peer);
/* Operations queued from now on find what came in and may overwrite what went out. */
int exchange_end(struct exchange *exchange);
void exchange_free(struct exchange *exchange);

#endif
