/* Runs one operation on the reference and several times on a backend, each on its own copy of the buffers,
 * and compares all buffers afterwards, inputs included:
 *
 *     struct buffer *x = make("x", n, -1, 1), *y = make("y", n, -1, 1);
 *     operation = "add";
 *     EACH_SIDE(i) start(i)->add(n, x->x[i], y->x[i]);
 *     compare(1, ANY_THREADS);
 *
 * The backends are those of test_backends (support/backend.h). Where one has a device of its own, the
 * backend's copies lie in the device's memory, of which the host sees no result before synchronize();
 * compare() and start(REFERENCE) do that themselves. */
#ifndef GDN_TEST_HARNESS_H
#define GDN_TEST_HARNESS_H

#include "kernels/operations.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

/* The reference, and the backend on one, two and three threads, and on three once more. On a device
 * TWO_THREADS is left out, and ONE_THREAD has buffers that begin one element behind an aligned address. */
enum side { REFERENCE, ONE_THREAD, TWO_THREADS, THREE_THREADS, THREE_AGAIN, SIDES };

struct buffer {
    const char *name;
    long count;
    bool near; /* compare_apart() compares it as compare() does */
    real *x[SIDES];
};

/* Sums in double. */
struct sums {
    const char *name;
    long count;
    double *x[SIDES];
};

/* What is under test, for messages; text: the shape. */
extern const struct ops *backend;
extern const char *operation;
extern char text[160];

/* A buffer of `count` numbers in [low, high), or of the integers in it, the same for each side. */
struct buffer *make(const char *name, long count, double low, double high);
int32_t *make_tokens(long count, int32_t below);  /* one for all sides; released like a buffer */
int32_t *make_targets(long count, int32_t below); /* the same, of which every third is −1: does not count */

/* Sums that operations add to, of numbers in [0, 1) at first. What is added to them has been computed in
 * `real`, or in double from the beginning. */
enum digits { OF_REALS, OF_DOUBLES };
struct sums *make_sums(const char *name, long count, enum digits digits);

/* What has been made under a name since the last comparison, or NULL. */
struct buffer *find_buffer(const char *name);
struct sums *find_sums(const char *name);

/* What the reference has computed becomes what a side has, as the host sees both (synchronize()). */
void like_the_reference(struct buffer *b, enum side side);

/* Sets the elements first, first + step, … */
void set(struct buffer *b, long first, long step, double value);

/* Sets the number of threads for a side and returns its table. */
const struct ops *start(enum side side);

/* Waits until the host may read what a backend's operations have written; a device that failed fails the
 * test. */
void synchronize(void);

/* Compares all buffers and sums and releases them. An element is a sum of `terms` products of numbers of
 * order 1, see harness.c. */
void compare(long terms, enum promise promise);

/* The same where both sides may besides be so far apart, relative to an element and to a usual one. */
void compare_apart(long terms, enum promise promise, double apart);

void release(void);

/* An entry of a table of tests of operations: buffers that a test has left, having failed, are released. */
#define OPERATION_TEST(name) cmocka_unit_test_teardown(name, release_after)
int release_after(void **state);

/* Set-up of a group of tests: says which backends it is about. */
int describe_backends(void **state);

/* The next side that takes part. */
enum side next_side(enum side side);

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* The pointer of this side, or NULL. */
#define AT(b, side) ((b) ? (b)->x[side] : NULL)
#define EACH_SIDE(i) for (enum side i = REFERENCE; i < SIDES; i = next_side(i))
#define EACH_BACKEND for (const struct ops *const *each = test_backends(); (backend = *each); each++)

#endif
