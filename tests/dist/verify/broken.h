/* Schedules that a test breaks, to see that the verifier finds it. */
#ifndef GDN_TEST_BROKEN_H
#define GDN_TEST_BROKEN_H

#include "tests/dist/schedule/example.h"

/* Three ranks of two layers; node 0 is read two stages on, buckets overlap. */
extern const struct shape shape, with_projections;

/* A rank's actions, and one of them. */
struct actions *list(struct example *e, int rank);
struct action *at(struct example *e, int rank, int i);

/* The place of a rank's action; `index` and `micro_batch` −1: any. */
int find(struct example *e, int rank, enum act act, int payload, int index, int micro_batch);

/* Leaves an action out, or moves it to before place `to`. */
void delete (struct example *e, int rank, int i);
void move(struct example *e, int rank, int i, int to);

/* Verification fails, with a text that has these in it. Frees the example. */
void expect(struct example *e, const char *first, const char *second);

#endif
