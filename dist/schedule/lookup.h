/* Finds a rank's buffers by what they hold (payload, index, micro-batch), among thousands: a hash table of
 * the buffers' numbers. The caller, who has the buffers, compares what comes. */
#ifndef GDN_LOOKUP_H
#define GDN_LOOKUP_H

#include "dist/schedule/schedule.h"

struct lookup {
    int capacity;   /* a power of two, or 0 */
    int *first;     /* [capacity] by the hash's low bits: the number that was put there last; −1 */
    int *next;      /* [capacity] by number: the one that was put there before it, −1; NOWHERE: not put */
    unsigned *hash; /* [capacity] by number, of what it holds */
};

/* Makes room for numbers below `count`; what was put stays. −1 without memory: then the table is as it was.
 * All zero is an empty table. */
int lookup_reserve(struct lookup *lookup, int count);
void lookup_free(struct lookup *lookup);

/* Buffer `number` holds this from now on; nothing of it is in the table. */
void lookup_put(struct lookup *lookup, int number, enum payload payload, int index, int micro_batch);
/* It holds nothing any more. */
void lookup_remove(struct lookup *lookup, int number);

/* Numbers of buffers, one after the other, all that hold this among them; −1: no more. */
int lookup_first(const struct lookup *lookup, enum payload payload, int index, int micro_batch);
int lookup_next(const struct lookup *lookup, int number);

#endif
