/* Factors of a matrix whose rows several ranks have (kernels/lowrank/lowrank.h), which come together over an
 * axis: those of the whole matrix but for rounding, with the same bits on all ranks where all have them,
 * whether a rank has more rows than there are factors or fewer. What is handed over is what a plan counts.
 * Runs on any number of ranks, and beside sums on any device and transport (side.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/comm/axis_host.h"
#include "kernels/backends/backends.h"
#include "kernels/base/random.h"
#include "kernels/lowrank/lowrank.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

static struct mesh mesh;
static struct axis *axis; /* the data axis: all ranks */

struct matrix {
    long T, D, k; /* own rows, columns, rank of the factors */
    real *x;      /* [ranks·T, D], on all ranks */
};

/* Singular values fall by halves, so that the last factors are far below the first. */
static struct matrix draw(long T, long D, double ratio) {
    const long all = T * axis->size;
    struct matrix m = {T, D, lowrank_of_ratio(all, D, ratio), calloc((size_t)(all * D), sizeof(real))};
    for (int j = 0; j < 12; j++)
        for (long t = 0; t < all; t++) {
            const double u = ldexp(random_normal(1, (uint64_t)j, (uint64_t)t), -j);
            for (long d = 0; d < D; d++)
                m.x[t * D + d] += (real)(u * random_normal(2, (uint64_t)j, (uint64_t)d));
        }
    return m;
}

static double norm(const struct matrix *m) {
    double sum = 0;
    for (long i = 0; i < axis->size * m->T * m->D; i++) sum += (double)m->x[i] * (double)m->x[i];
    return sqrt(sum);
}

/* Scratch is for more rows and factors than there are, as of a small micro-batch. */
enum { MORE = 3 };

struct factors_of {
    struct arena arena;
    struct lowrank w;
    real *q, *b, *product; /* [T, k], [k, D], [T, D] */
};

/* Factors of T rows from x on; with peers, of all of theirs. */
static struct factors_of split(const struct matrix *m, const real *x, long T,
                               const struct lowrank_peers *peers) {
    const struct ops *ops = ops_all()[0];
    struct factors_of f = {.arena = {.name = "factors", .device = ops->device}};
    const long all = (T + MORE) * (peers ? peers->size : 1), side = all < m->D ? all : m->D;
    const long most = m->k + MORE < side ? m->k + MORE : side;
    for (int round = 0; round < 2; round++) {
        lowrank_lay_out_divided(&f.w, &f.arena, ops, T + MORE, m->D, most, peers);
        f.q = arena_take(&f.arena, (size_t)(T * m->k) * sizeof(real));
        f.b = arena_take(&f.arena, (size_t)(m->k * m->D) * sizeof(real));
        f.product = arena_take(&f.arena, (size_t)(T * m->D) * sizeof(real));
        if (!round) assert_int_equal(arena_reserve(&f.arena), 0);
    }
    lowrank_split(&f.w, T, m->D, x, m->k, 5, f.q, f.b);
    lowrank_join(ops, T, m->D, m->k, f.q, f.b, f.product);
    return f;
}

/* All ranks' products qᵀq, less 1. */
static double from_orthonormal(const struct matrix *m, const real *q) {
    double worst = 0;
    for (long i = 0; i < m->k; i++)
        for (long j = 0; j < m->k; j++) {
            double sum = i == j ? -1.0 / axis->size : 0;
            for (long t = 0; t < m->T; t++) sum += (double)q[t * m->k + i] * (double)q[t * m->k + j];
            axis_sum_doubles(axis, &sum, 1);
            worst = fmax(worst, fabs(sum));
        }
    return worst;
}

static void same_on_all(const real *x, long count) {
    double *mine = malloc((size_t)count * sizeof *mine),
           *all = malloc((size_t)(axis->size * count) * sizeof *all);
    for (long i = 0; i < count; i++) mine[i] = (double)x[i];
    axis_gather_doubles(axis, mine, count, all);
    for (int r = 0; r < axis->size; r++)
        assert_memory_equal(all + r * count, mine, (size_t)count * sizeof *mine);
    free(mine);
    free(all);
}

static void check(long T, long D, double ratio) {
    struct matrix m = draw(T, D, ratio);
    struct axis_host host;
    assert_int_equal(axis_host_create(axis, lowrank_split_longest(axis->size, T, D, m.k), &host), 0);
    const struct lowrank_peers peers = {axis->size, axis->index, &host, axis_host_sum,
                                        axis_host_gather_columns};
    const real *own = m.x + axis->index * T * D;
    /* A sum of the device's, which may still be under way. */
    enum { TERMS = 1200 };
    real terms[TERMS];
    for (int i = 0; i < TERMS; i++) terms[i] = (real)(axis->index + i);
    real *beside = side_make(terms, TERMS);
    axis_sum(axis, beside, TERMS);
    const int64_t bytes = axis->bytes, calls = axis->calls;
    struct factors_of f = split(&m, own, T, &peers);
    axis_sum(axis, beside, TERMS);
    side_get(terms, beside, TERMS);
    side_drop(beside);
    const int n = axis->size;
    for (int i = 0; i < TERMS; i++) assert_true(terms[i] == (real)(n * (n * (n - 1) / 2 + n * i)));
    assert_int_equal(axis->status, 0);

    /* As much as the first rank; the sums beside are of as many elements from each, too. */
    struct axis planned = axis_planned("data", axis->size, 0);
    struct axis_host plan = {.axis = &planned};
    const struct lowrank_peers counted = {axis->size, axis->index, &plan, axis_host_sum,
                                          axis_host_gather_columns};
    lowrank_split_planned(&counted, T, D, m.k);
    axis_sum(&planned, beside, TERMS);
    assert_true(planned.bytes == axis->bytes - bytes && planned.calls == axis->calls - calls &&
                planned.calls > 1);

    /* Roundings of the largest singular value, in sums of some dozen products. */
    const double rounding = 100 * (sizeof(real) == 8 ? 2.3e-16 : 1.2e-7);
    struct factors_of whole = split(&m, m.x, T * axis->size, NULL);
    double off = 0;
    for (long i = 0; i < T * D; i++)
        off = fmax(off, fabs((double)f.product[i] - (double)whole.product[axis->index * T * D + i]));
    if (off > rounding * norm(&m))
        fail_msg("[%ld, %ld] of %d ranks, rank %ld: %g off", T, D, axis->size, m.k, off);
    assert_true(from_orthonormal(&m, f.q) < rounding);
    same_on_all(f.b, m.k * D);
    arena_free(&f.arena);
    arena_free(&whole.arena);

    /* One rank has what is not finite: all know. */
    if (axis->index == axis->size - 1) m.x[axis->index * T * D + 1] = NAN;
    f = split(&m, own, T, &peers);
    for (long i = 0; i < m.k * D; i++) assert_true(isnan(f.b[i]));
    for (long i = 0; i < T * m.k; i++) assert_true(f.q[i] == 0);
    arena_free(&f.arena);
    axis_host_free(&host);
    free(m.x);
}

static void test_divided(void **state) {
    (void)state;
    check(16, 23, 0.25); /* more rows than factors on each rank */
    check(16, 23, 1);
    check(4, 24, 0.9); /* fewer */
    check(1, 5, 1);
    check(40, 3, 0.5); /* a single one */
}

static int set_up(void) {
    TRY(side_mesh(0, 1, 1, &mesh));
    axis = &mesh.axis[AXIS_DATA];
    return axis_reserve(axis, 1200);
}

static void tear_down(void) {
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_divided)};
    return run_on_ranks(tests, set_up, tear_down);
}
