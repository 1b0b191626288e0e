/* Runs one slot on the reference and on a backend with several numbers of threads, each on its own copy of
 * the buffers, and compares all buffers afterwards, inputs included:
 *
 *     struct buffer *x = make("x", n, -1, 1), *y = make("y", n, -1, 1);
 *     slot = "add";
 *     EACH_SIDE(i) start(i)->add(n, x->x[i], y->x[i]);
 *     compare(1, ANY_THREADS);
 */
#ifndef GDN_TEST_HARNESS_H
#define GDN_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernels/ops.h"

/* The reference, and the backend on one, two and three threads, and on three once more. */
enum side { REFERENCE, ONE_THREAD, TWO_THREADS, THREE_THREADS, THREE_AGAIN, SIDES };

struct buffer {
    const char *name;
    long count;
    real *x[SIDES];
};

/* What is under test, for messages; words: the shape. */
extern const struct ops *backend;
extern const char *slot;
extern char words[160];

/* A buffer of `count` numbers in [low, high), or of the integers in it, the same for each side. */
struct buffer *make(const char *name, long count, double low, double high);
int32_t *make_tokens(long count, int32_t below); /* released like a buffer */

/* Sets the elements first, first + step, … */
void set(struct buffer *b, long first, long step, double value);

/* Sets the number of threads for a side and returns its table. */
const struct ops *start(enum side side);

/* Compares all buffers and releases them. An element is a sum of `terms` products of numbers of order 1, see
 * harness.c. ANY_THREADS: the contract promises the same bits for every number of threads; else only for one
 * number. */
enum promise { ANY_THREADS, SAME_THREADS };
void compare(long terms, enum promise promise);

/* The same for a returned double. */
void compare_numbers(const char *name, const double x[SIDES], long terms, enum promise promise);

void release(void);

/* For a test's main: 0, or the status to leave with because GDN_ISA asks for what this processor lacks (77, a
 * skipped test) or because there is no CPU backend (1). */
int harness_begin(void);

/* The pointer of this side, or NULL. */
#define AT(b, side) ((b) ? (b)->x[side] : NULL)
#define EACH_SIDE(i) for (enum side i = REFERENCE; i < SIDES; i++)
#define EACH_BACKEND for (const struct ops *const *each = ops_all(); (backend = *each); each++)

#endif
