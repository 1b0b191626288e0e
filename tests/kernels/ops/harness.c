#include "tests/kernels/ops/harness.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"

static const double EPSILON = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;

const struct ops *backend;
const char *operation;
char text[160];

/* ----------------------------------------------------------------------------------------------- memory */

/* One copy of a buffer: `bytes` bytes at `base`, and behind them GUARD bytes that nobody may write. */
struct copy {
    const struct device *device; /* NULL: memory of malloc, whose bounds a sanitizer watches */
    char *reserved, *base;
    size_t bytes;
};

enum { MAX_BUFFERS = 32, MAX_SUMS = 4, MAX_COPIES = (MAX_BUFFERS + MAX_SUMS) * SIDES, GUARD = 64 };
static const char guard = 0x55;

static struct copy copies[MAX_COPIES];
static struct buffer buffers[MAX_BUFFERS];
static struct sums sums[MAX_SUMS];
static enum digits sums_digits[MAX_SUMS];
static int copies_used, buffers_used, sums_used;
static int32_t *tokens;
static struct copy tokens_copy;

static bool on_device(void) {
    return backend && !backend->device->host;
}

/* Memory for `count` elements; on a device, `shift` elements behind an aligned address. */
static struct copy reserve(bool device, size_t count, size_t size, size_t shift) {
    struct copy copy = {.bytes = count * size};
    if (!device) {
        assert_non_null(copy.reserved = copy.base = malloc(copy.bytes));
        return copy;
    }
    copy.device = backend->device;
    copy.reserved = copy.device->reserve(shift * size + copy.bytes + GUARD);
    if (!copy.reserved) fail_msg("%zu bytes of %s: %s", copy.bytes, backend->name, gdn_failure());
    copy.base = copy.reserved + shift * size;
    synchronize();
    memset(copy.base + copy.bytes, guard, GUARD);
    return copy;
}

static void give_back(const struct copy *copy) {
    if (copy->device)
        copy->device->release(copy->reserved);
    else
        free(copy->reserved);
}

static void check_guard(const struct copy *copy) {
    for (size_t i = 0; copy->device && i < GUARD; i++)
        if (copy->base[copy->bytes + i] != guard)
            fail_msg("%s of %s, %s: byte %zu behind a buffer of %zu is written", operation, backend->name,
                     text, i, copy->bytes);
}

static void *reserve_side(enum side side, long count, size_t size) {
    struct copy *copy = &copies[copies_used];
    *copy = reserve(side != REFERENCE && on_device(), (size_t)count, size, side == ONE_THREAD);
    copies_used++;
    return copy->base;
}

void like_the_reference(struct buffer *b, enum side side) {
    if (side != REFERENCE) memcpy(b->x[side], b->x[REFERENCE], (size_t)b->count * sizeof(real));
}

struct buffer *make(const char *name, long count, double low, double high) {
    assert_true(buffers_used < MAX_BUFFERS);
    struct buffer *b = &buffers[buffers_used++];
    *b = (struct buffer){.name = name, .count = count};
    uint64_t state = random_name(name) | 1;
    EACH_SIDE(side) b->x[side] = reserve_side(side, count, sizeof(real));
    for (long i = 0; i < count; i++) { /* a linear congruential generator, as many numbers are needed */
        state = state * 6364136223846793005u + 1442695040888963407u;
        b->x[REFERENCE][i] = (real)(low + (high - low) * (double)(state >> 40) / (1 << 24));
    }
    EACH_SIDE(side) like_the_reference(b, side);
    return b;
}

struct sums *make_sums(const char *name, long count, enum digits digits) {
    assert_true(sums_used < MAX_SUMS);
    struct sums *s = &sums[sums_used];
    sums_digits[sums_used++] = digits;
    *s = (struct sums){.name = name, .count = count};
    EACH_SIDE(side) {
        s->x[side] = reserve_side(side, count, sizeof(double));
        for (long i = 0; i < count; i++) s->x[side][i] = random_uniform(1, random_name(name), (uint64_t)i);
    }
    return s;
}

int32_t *make_tokens(long count, int32_t below) {
    if (tokens) synchronize(), give_back(&tokens_copy);
    tokens_copy = reserve(on_device(), (size_t)count, sizeof *tokens, 1);
    tokens = (int32_t *)tokens_copy.base;
    for (long i = 0; i < count; i++)
        tokens[i] = (int32_t)(random_bits(1, random_name("token"), (uint64_t)i) % (uint64_t)below);
    return tokens;
}

int32_t *make_targets(long count, int32_t below) {
    int32_t *targets = make_tokens(count, below);
    for (long i = 1; i < count; i += 3) targets[i] = -1;
    return targets;
}

struct buffer *find_buffer(const char *name) {
    for (int i = 0; i < buffers_used; i++)
        if (strcmp(buffers[i].name, name) == 0) return &buffers[i];
    return NULL;
}

struct sums *find_sums(const char *name) {
    for (int i = 0; i < sums_used; i++)
        if (strcmp(sums[i].name, name) == 0) return &sums[i];
    return NULL;
}

void set(struct buffer *b, long first, long step, double value) {
    EACH_SIDE(side)
    for (long i = first; i < b->count; i += step) b->x[side][i] = (real)value;
}

void release(void) {
    if (on_device()) backend->device->wait();
    for (; copies_used > 0; copies_used--) give_back(&copies[copies_used - 1]);
    buffers_used = sums_used = 0;
    if (tokens) give_back(&tokens_copy);
    tokens = NULL;
}

int release_after(void **state) {
    (void)state;
    release();
    return 0;
}

/* ------------------------------------------------------------------------------------------------- sides */

enum side next_side(enum side side) {
    return side == ONE_THREAD && on_device() ? THREE_THREADS : side + 1;
}

const struct ops *start(enum side side) {
    static const int threads[SIDES] = {1, 1, 2, 3, 3};
    omp_set_num_threads(threads[side]);
    if (side != REFERENCE) return backend;
    synchronize();
    return test_in_precision(ops_find("reference"));
}

void synchronize(void) {
    if (on_device() && backend->device->wait() != 0)
        fail_msg("%s of %s, %s: %s", operation, backend->name, text, gdn_failure());
}

/* ------------------------------------------------------------------------------------------- comparisons */

/* The reference rounds once, a backend after every operation. Roundings are about as often up as down, so
 * those of a sum of k terms add up to about √k of one; but a term is rounded relative to itself, or to the
 * sum so far, not to what is left after terms cancelled. Hence √k roundings, with a factor of 4 for the tail
 * of the distribution and 16 for the operations around the sum, of the element, of a usual element of the
 * buffer (root mean square), and of 1/16 for buffers of one element in which terms of order 1 cancel. A wrong
 * term is wrong by order 1. */
static double tolerance(double epsilon, long terms) { /* of |expected| + usual + 0.0625 */
    return epsilon * (16 + 4 * sqrt((double)terms));
}

static bool same(const void *const x[SIDES], enum side a, enum side b, size_t bytes) {
    return memcmp(x[a], x[b], bytes) == 0;
}

static void compare_bits(const char *name, enum promise promise, const void *const x[SIDES], size_t bytes) {
    bool any = promise == ANY_THREADS && !on_device();
    if (!same(x, THREE_THREADS, THREE_AGAIN, bytes) ||
        (any && !(same(x, ONE_THREAD, TWO_THREADS, bytes) && same(x, ONE_THREAD, THREE_THREADS, bytes))))
        fail_msg("%s of %s, %s: %s is not the same for %s number of threads", operation, backend->name, text,
                 name, any ? "every" : "a");
}

static void compare_element(const char *name, long i, double got, double expected, double usual,
                            double allowed) {
    if (!(fabs(got - expected) <= allowed))
        fail_msg("%s of %s, %s: %s[%ld] is %.17g, the reference has %.17g (usual size %.3g)", operation,
                 backend->name, text, name, i, got, expected, usual);
}

/* Whether these are to the bit the *last that were compared with the reference; if not, they are the next. */
static bool is_compared(const void **last, const void *x, size_t bytes) {
    if (*last && memcmp(*last, x, bytes) == 0) return true;
    *last = x;
    return false;
}

static void compare_buffer(const struct buffer *b, long terms, enum promise promise, double apart) {
    double squares = 0;
    for (long i = 0; i < b->count; i++) squares += (double)b->x[REFERENCE][i] * b->x[REFERENCE][i];
    const double usual = sqrt(squares / (double)b->count), near = tolerance(EPSILON, terms);
    if (b->near) apart = 0;
    const void *last = NULL;
    EACH_SIDE(side) {
        if (side == REFERENCE || is_compared(&last, b->x[side], (size_t)b->count * sizeof(real))) continue;
        for (long i = 0; i < b->count; i++) {
            double expected = b->x[REFERENCE][i], size = fabs(expected) + usual;
            compare_element(b->name, i, b->x[side][i], expected, usual,
                            near * (size + 0.0625) + apart * size);
        }
    }
    compare_bits(b->name, promise, (const void *const *)b->x, (size_t)b->count * sizeof(real));
}

/* Sums of few terms may cancel, but here none is measured by the others. */
static void compare_sums(const struct sums *s, enum digits digits, long terms, enum promise promise) {
    const double near = tolerance(digits == OF_DOUBLES ? DBL_EPSILON : EPSILON, terms);
    const void *last = NULL;
    EACH_SIDE(side) {
        if (side == REFERENCE || is_compared(&last, s->x[side], (size_t)s->count * sizeof(double))) continue;
        for (long i = 0; i < s->count; i++) {
            double expected = s->x[REFERENCE][i];
            compare_element(s->name, i, s->x[side][i], expected, 0, near * (fabs(expected) + 0.0625));
        }
    }
    compare_bits(s->name, promise, (const void *const *)s->x, (size_t)s->count * sizeof(double));
}

void compare(long terms, enum promise promise) {
    compare_apart(terms, promise, 0);
}

void compare_apart(long terms, enum promise promise, double apart) {
    synchronize();
    for (int i = 0; i < copies_used; i++) check_guard(&copies[i]);
    for (int i = 0; i < buffers_used; i++) compare_buffer(&buffers[i], terms, promise, apart);
    for (int i = 0; i < sums_used; i++) compare_sums(&sums[i], sums_digits[i], terms, promise);
    release();
}

int describe_backends(void **state) {
    (void)state;
    for (const struct ops *const *each = test_backends(); *each; each++)
        printf("%s\n", (*each)->device->host ? ops_describe(*each) : (*each)->device->describe());
    return 0;
}
