#include "harness.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/random.h"
#include "kernels/base/status.h"

static const double EPSILON = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;

const struct ops *backend;
const char *slot;
char words[160];

enum { MOST_BUFFERS = 32 };
static struct buffer buffers[MOST_BUFFERS];
static int used;
static int32_t *tokens;

struct buffer *make(const char *name, long count, double low, double high) {
    assert_true(used < MOST_BUFFERS);
    struct buffer *b = &buffers[used++];
    *b = (struct buffer){.name = name, .count = count};
    uint64_t state = random_name(name) | 1;
    for (int side = 0; side < SIDES; side++)
        assert_non_null(b->x[side] = malloc((size_t)count * sizeof(real)));
    for (long i = 0; i < count; i++) { /* a linear congruential generator, as many numbers are needed */
        state = state * 6364136223846793005u + 1442695040888963407u;
        b->x[REFERENCE][i] = (real)(low + (high - low) * (double)(state >> 40) / (1 << 24));
    }
    for (int side = 1; side < SIDES; side++)
        memcpy(b->x[side], b->x[REFERENCE], (size_t)count * sizeof(real));
    return b;
}

int32_t *make_tokens(long count, int32_t below) {
    free(tokens);
    assert_non_null(tokens = malloc((size_t)count * sizeof *tokens));
    for (long i = 0; i < count; i++)
        tokens[i] = (int32_t)(random_bits(1, random_name("token"), (uint64_t)i) % (uint64_t)below);
    return tokens;
}

void set(struct buffer *b, long first, long step, double value) {
    for (int side = 0; side < SIDES; side++)
        for (long i = first; i < b->count; i += step) b->x[side][i] = (real)value;
}

const struct ops *start(enum side side) {
    static const int threads[SIDES] = {1, 1, 2, 3, 3};
    omp_set_num_threads(threads[side]);
    return side == REFERENCE ? ops_find("reference") : backend;
}

void release(void) {
    for (; used > 0; used--)
        for (int side = 0; side < SIDES; side++) free(buffers[used - 1].x[side]);
    free(tokens);
    tokens = NULL;
}

/* The reference rounds once, a backend after every operation. Roundings are about as often up as down, so
 * those of a sum of k terms add up to about √k of one; but a term is rounded relative to itself, or to the
 * sum so far, not to what is left after terms cancelled. Hence √k roundings, with a factor of 4 for the tail
 * of the distribution and 16 for the operations around the sum, of the element, of a usual element of the
 * buffer (root mean square), and of 1/16 for buffers of one element in which terms of order 1 cancel. A wrong
 * term is wrong by order 1. */
static double tolerance(double expected, double usual, long terms) {
    return EPSILON * (16 + 4 * sqrt((double)terms)) * (fabs(expected) + usual + 0.0625);
}

static const char *promised(enum promise promise) {
    return promise == ANY_THREADS ? "for every number of threads" : "for a number of threads";
}

static bool differ(enum promise promise, const void *const x[SIDES], size_t bytes) {
    if (memcmp(x[THREE_THREADS], x[THREE_AGAIN], bytes) != 0) return true;
    return promise == ANY_THREADS && (memcmp(x[ONE_THREAD], x[TWO_THREADS], bytes) != 0 ||
                                      memcmp(x[ONE_THREAD], x[THREE_THREADS], bytes) != 0);
}

static void compare_buffer(const struct buffer *b, long terms, enum promise promise) {
    double squares = 0;
    for (long i = 0; i < b->count; i++) squares += (double)b->x[REFERENCE][i] * b->x[REFERENCE][i];
    double usual = sqrt(squares / (double)b->count);
    for (int side = ONE_THREAD; side < SIDES; side++)
        for (long i = 0; i < b->count; i++) {
            double expected = b->x[REFERENCE][i], got = b->x[side][i];
            if (!(fabs(got - expected) <= tolerance(expected, usual, terms)))
                fail_msg("%s of %s, %s: %s[%ld] is %.9g, the reference has %.9g (usual size %.3g)", slot,
                         backend->name, words, b->name, i, got, expected, usual);
        }
    if (differ(promise, (const void *const *)b->x, (size_t)b->count * sizeof(real)))
        fail_msg("%s of %s, %s: %s is not the same %s", slot, backend->name, words, b->name,
                 promised(promise));
}

void compare(long terms, enum promise promise) {
    for (int i = 0; i < used; i++) compare_buffer(&buffers[i], terms, promise);
    release();
}

void compare_numbers(const char *name, const double x[SIDES], long terms, enum promise promise) {
    const void *at[SIDES];
    for (int side = 0; side < SIDES; side++) {
        at[side] = &x[side];
        if (!(fabs(x[side] - x[REFERENCE]) <= tolerance(x[REFERENCE], 0, terms)))
            fail_msg("%s of %s, %s: %s is %.17g, the reference has %.17g", slot, backend->name, words, name,
                     x[side], x[REFERENCE]);
    }
    if (differ(promise, at, sizeof x[0]))
        fail_msg("%s of %s, %s: %s is not the same %s", slot, backend->name, words, name, promised(promise));
}

int harness_begin(void) {
    const struct ops *cpu = ops_find("cpu");
    if (cpu) {
        printf("%s\n", ops_describe(cpu));
        return 0;
    }
    printf("%s\n", gdn_failure());
    return getenv("GDN_ISA") ? 77 : 1;
}
