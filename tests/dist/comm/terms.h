/* What tests of one axis sum and hand over: terms of very different sizes, so that the order of addition shows in
 * the bits, in buffers on the side that is tested (side.h). Terms repeat with a prime period, to be quick. */
#ifndef GDN_TEST_TERMS_H
#define GDN_TEST_TERMS_H

#include "tests/dist/comm/side.h"

enum { PERIOD = 4099 };

extern struct mesh mesh;
extern struct axis *axis;           /* the data axis: all ranks */
extern real *terms, right[PERIOD]; /* terms [ranks, PERIOD], and their sums in rank order */

/* This rank's terms, on the host and as a buffer of the axis. */
struct buffer {
    real *host, *x; /* [count + 1]: nothing may be written behind the end */
    long count;
};

struct buffer mine(long count);
void put(const struct buffer *b);
void get(const struct buffer *b);
void drop(struct buffer *b);

/* Whether MPI has been given no more at a time since the last call than it is to be given. */
void check_pieces(long min);
/* What the axis has counted since the last call. */
int64_t counted(void);

/* For run_on_ranks: the mesh and the terms. */
int terms_set_up(void);
void terms_tear_down(void);

#endif
