/* Every operation of the list (kernels/operations.h) on every backend against the reference: at odd shapes,
 * in all variants of its call, with one, two and three threads. A new entry is a new test by itself. What is
 * special to an operation stands in the tests beside this one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/operations.h"
#include "tests/kernels/ops/harness.h"

/* Odd ones too, with several groups, connections and heads. */
static const struct sizes shapes[] = {
    /* B, S, D, F, V; H, K, hd; G, n, Hd, a, heads */
    {1, 1, 8, 1, 1, 1, 1, 2, 2, 1, 3, 3, 1},
    {1, 7, 8, 5, 5, 2, 1, 6, 4, 2, 3, 5, 2},
    {1, 7, 30, 64, 257, 3, 3, 32, 5, 5, 32, 16, 3},
    {1, 1, 128, 257, 1031, 4, 4, 32, 16, 4, 32, 16, 4},
    {3, 100, 128, 96, 128, 6, 2, 64, 16, 3, 3, 8, 4},
    {2, 150, 30, 33, 9, 3, 1, 38, 3, 4, 32, 16, 2},
    {1, 65, 768, 130, 96, 2, 2, 136, 48, 4, 32, 16, 6},
    {1, 2, 8, 9001, 20011, 1, 1, 2, 2, 1, 3, 3, 1},
    {9, 70, 64, 40, 700, 2, 1, 20, 4, 2, 3, 5, 2}, /* more key heads than threads */
    {5, 1, 1300, 7, 5, 1, 1, 2, 2, 2, 600, 9, 2},  /* wider than a tile of the CPU backend */
    {3, 1, 1026, 7, 5, 1, 1, 2, 2, 2, 513, 9, 2},  /* and by one column, which is then alone in its tile */
    {2, 1, 8704, 7, 5, 1, 1, 2, 32, 2, 4356, 2056, 2}, /* wider than what a team of the CUDA backend keeps */
    {3, 1, 12, 7, 5, 1, 1, 2, 3, 40, 8, 4, 3},         /* more connections than a warp has threads */
    {0, 1, 30, 33, 9, 3, 1, 38, 3, 4, 32, 16, 2},      /* no rows, as tensor ranks beyond the tokens have */
};

/* ----------------------------------------------------------------------------------- arguments of a call */

static enum side side; /* that calls */
static int32_t *tokens;
static real list[OPS_CONNECTIONS];
static struct {
    const char *name;
    real *row[OPS_CONNECTIONS];
} rows[5]; /* lists of a call */

/* Buffers whose contents are no numbers: to be compared by their bits, and not at all. */
static struct sums *same_bits[4];
static struct buffer *left[4];
static int same_bits_count, left_count;

static struct buffer *make_reals(const struct argument *a, long count) {
    bool usual = a->low == 0 && a->high == 0;
    struct buffer *b = make(a->name, count, usual ? -1 : a->low, usual ? 1 : a->high);
    if (a->access == LEFT) left[left_count++] = b;
    return b;
}

static real *reals(const struct argument *a, long count) {
    struct buffer *b = find_buffer(a->name);
    return (b ? b : make_reals(a, count))->x[side];
}

static double *sums(const struct argument *a) {
    struct sums *s = find_sums(a->name);
    return (s ? s : make_sums(a->name, a->count, a->kind == REALS_SUMS ? OF_REALS : OF_DOUBLES))->x[side];
}

static void clear(struct sums *s) {
    EACH_SIDE(each) memset(s->x[each], 0, (size_t)s->count * sizeof *s->x[each]);
}

/* In doubles, which are aligned for whatever it is. */
static void *bits(const struct argument *a) {
    struct sums *s = find_sums(a->name);
    if (!s) {
        s = make_sums(a->name, (a->count + (long)sizeof(double) - 1) / (long)sizeof(double), OF_DOUBLES);
        clear(same_bits[same_bits_count++] = s);
    }
    return s->x[side];
}

static real **take_rows(const struct argument *a) {
    size_t r = 0;
    while (r < COUNT(rows) && rows[r].name && rows[r].name != a->name) r++;
    assert_true(r < COUNT(rows));
    rows[r].name = a->name;
    for (long i = 0; i < a->touched; i++) rows[r].row[i] = reals(a, a->touched * a->count) + i * a->count;
    return rows[r].row;
}

/* Numbers of 0.5 to 2 in bf16, two in each integer, of which every other one may be negative. */
static int32_t *make_codes(long count) {
    int32_t *pairs = make_tokens((count + 1) / 2, INT32_MAX);
    for (long i = 0; i < (count + 1) / 2; i++) pairs[i] = (pairs[i] & 0x00ff80ff) | 0x3f003f00;
    return pairs;
}

static void *take(struct caller *caller, const struct argument *a) {
    (void)caller;
    switch (a->kind) {
    case REALS:
        return reals(a, a->count);
    case INTEGERS:
        if (!tokens) tokens = (a->low < 0 ? make_targets : make_tokens)(a->count, (int32_t)a->high);
        return tokens;
    case BF16S:
        if (!tokens) tokens = make_codes(a->count);
        return tokens;
    case SAME_BITS:
        return bits(a);
    case REALS_SUMS:
    case DOUBLES_SUMS:
        return sums(a);
    case LIST_ON_HOST:
        for (long i = 0; i < a->count; i++)
            list[i] = (real)(a->low + (a->high - a->low) * (double)i / (double)a->count);
        return list;
    case ROWS_ON_HOST:
        return take_rows(a);
    }
    fail_msg("an argument of an unknown kind");
    return NULL;
}

/* ---------------------------------------------------------------------------------------------- the tests */

/* Lists on the host have been read when a call returns. */
static void spoil_lists(void) {
    for (int i = 0; i < OPS_CONNECTIONS; i++) list[i] = (real)NAN;
    memset(rows, 0, sizeof rows);
}

static void compare_bits_and_clear(void) {
    synchronize();
    for (; same_bits_count > 0; same_bits_count--) {
        struct sums *s = same_bits[same_bits_count - 1];
        EACH_SIDE(each)
        if (memcmp(s->x[each], s->x[REFERENCE], (size_t)s->count * sizeof(double)) != 0)
            fail_msg("%s of %s, %s: %s has not the reference's bits", operation, backend->name, text,
                     s->name);
        clear(s);
    }
    for (; left_count > 0; left_count--) set(left[left_count - 1], 0, 1, 0);
}

static void compare_variant(const struct operation *o, struct caller *caller) {
    const struct sizes *z = &caller->sizes;
    long terms = 0;
    snprintf(text, sizeof text, "variant %u at B %ld S %ld D %ld F %ld V %ld H %ld K %ld hd %ld G %ld n %ld",
             caller->variant, z->B, z->S, z->D, z->F, z->V, z->H, z->K, z->hd, z->G, z->n);
    EACH_SIDE(each) {
        side = each;
        terms = o->call(start(each), caller);
        spoil_lists();
    }
    compare_bits_and_clear();
    compare(terms, o->promise);
    tokens = NULL;
}

static void backends_agree(void **state) {
    const struct operation *o = *state;
    operation = o->name;
    tokens = NULL, same_bits_count = left_count = 0; /* of a test that has failed */
    EACH_BACKEND for (size_t s = 0; s < COUNT(shapes); s++) {
        struct caller caller = {.sizes = shapes[s], .variants = 1, .take = take};
        if (!o->has(backend)) continue; /* the host's alone */
        for (; caller.variant < caller.variants; caller.variant++) compare_variant(o, &caller);
    }
}

static void tables_are_full(void **state) {
    (void)state;
    EACH_BACKEND if (ops_missing(backend)) fail_msg("%s of %s is empty", ops_missing(backend), backend->name);
    assert_null(ops_missing(ops_find("reference")));
    assert_null(ops_missing(ops_find("count")));
}

int main(void) {
    enum { MOST = 200 };
    struct CMUnitTest tests[MOST] = {OPERATION_TEST(tables_are_full)};
    assert_true(1 + operations_count <= MOST);
    for (int i = 0; i < operations_count; i++)
        tests[1 + i] = (struct CMUnitTest){.name = operations[i].name,
                                           .test_func = backends_agree,
                                           .teardown_func = release_after,
                                           .initial_state = (void *)&operations[i]};
    return _cmocka_run_group_tests("operations", tests, (size_t)(1 + operations_count), describe_backends,
                                   NULL);
}
