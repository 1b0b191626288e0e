/* Sums that begin and travel while others do: the bits of axis_sum and its bytes, in either wire type, in
 * pieces of any size that follow each other. Runs on any number of ranks, and on any device whose buffers do
 * not go through host memory (side.h). */
#include <stdlib.h>
#include <string.h>

#include "dist/comm/axis_begun.h"
#include "kernels/base/random.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

static struct mesh mesh;
static struct axis *axis;

enum { N = 40013 };
/* Sizes of pieces: of one, of fewer elements than ranks, of odd ones, of most of it, of all. */
static const long pieces[] = {1, 2, 3, 7, 1009, 13338, 20007, 39999, N};

/* Of very different sizes, so that the order of addition shows in the bits. */
static real *terms(void) {
    real *x = malloc((N + 1) * sizeof *x);
    for (long i = 0; i < N; i++) {
        double drawn = random_normal(7, (uint64_t)mesh.rank, (uint64_t)i);
        x[i] = (real)(random_bits(8, (uint64_t)mesh.rank, (uint64_t)i) % 2 ? drawn * 1e6 : drawn);
    }
    x[N] = 12345; /* nothing may be written behind the end */
    return x;
}

static int64_t formula(long from, long step) {
    int64_t bytes = 0;
    for (long at = from; at < N; at += step)
        bytes += axis_formula_sum(mesh.size, mesh.rank, N - at < step ? N - at : step);
    return mesh.size == 1 ? 0 : bytes / (int64_t)sizeof(real) * (int64_t)wire_bytes(axis->wire);
}

/* From element `from` on in such pieces; what comes before is left alone. */
static void compare(const real *expected, long from, long step) {
    real *host = terms(), *x = side_make(host, N + 1);
    int64_t before = axis->bytes;
    for (long at = from; at < N; at += step) axis_sum_begin(axis, x + at, N - at < step ? N - at : step);
    axis_sum_end(axis);
    assert_int_equal(axis->bytes - before, formula(from, step));
    real *have = malloc((N + 1) * sizeof *have);
    side_get(have, x, N + 1);
    assert_int_equal(axis->status, 0);
    assert_memory_equal(have, host, (size_t)from * sizeof *have);
    for (long i = from; i < N; i++)
        if (memcmp(&have[i], &expected[i], sizeof *have))
            fail_msg("pieces of %ld from %ld on, element %ld: %.9g instead of %.9g", step, from, i,
                     (double)have[i], (double)expected[i]);
    assert_true(have[N] == 12345);
    free(have);
    side_drop(x);
    free(host);
}

static void as_at_once(enum wire wire) {
    axis->wire = wire;
    assert_int_equal(axis_reserve(axis, 2 * N), 0); /* three times N codes in bf16 */
    real *expected = terms(), *x = side_make(expected, N + 1);
    axis_sum(axis, x, N);
    side_get(expected, x, N + 1);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        bool many = N / pieces[i] > 1000;
        if (many && side_slow()) continue;
        compare(expected, many ? N - 100 : 0, pieces[i]); /* few of the short ones */
    }
    side_drop(x);
    free(expected);
}

static void stored(void **state) {
    (void)state;
    as_at_once(WIRE_STORED);
}

static void bf16(void **state) {
    (void)state;
    as_at_once(WIRE_BF16);
}

/* What would use the same scratch, or hang, is a failure. */
static void nothing_in_between(void **state) {
    (void)state;
    if (mesh.size == 1) return;
    real *host = terms(), *x = side_make(host, N);
    axis_sum_begin(axis, x, 100);
    axis_sum(axis, x + 100, 100);
    assert_int_equal(axis->status, GDN_INTERNAL);
    axis->status = 0;
    axis_sum_end(axis);
    assert_int_equal(axis->status, 0);
    axis_sum_begin(axis, x, axis_begun_max(axis) + 1);
    assert_int_equal(axis->status, GDN_INTERNAL);
    axis->status = 0;
    axis_sum_end(axis);
    side_drop(x);
    free(host);
}

static double work;
static double work_so_far(void) {
    return work;
}

/* A planned axis counts the same bytes, and of them as hidden those that work has been done beside. */
static void planned(void **state) {
    (void)state;
    struct axis_cover cover = {.work = work_so_far};
    struct axis p = axis_planned("tensor", 2, 1);
    p.cover = &cover;
    for (int i = 0; i < 3; i++) {
        work += 10; /* before the first there is nothing under way */
        axis_sum_begin(&p, NULL, 100);
    }
    axis_sum_end(&p);
    work += 5;
    axis_sum_begin(&p, NULL, 100);
    work += 7;
    axis_sum_end(&p);
    work += 9;
    axis_sum_end(&p);
    assert_int_equal(p.bytes, 4 * axis_formula_sum(2, 1, 100));
    assert_int_equal(p.calls, 4);
    assert_int_equal(cover.hidden_bytes, 3 * axis_formula_sum(2, 1, 100));
    assert_int_equal(cover.hidden_calls, 3);
    assert_true(cover.covering == 10 + 10 + 7);
}

static int set_up(void) {
    TRY(side_mesh(1, mesh.size, 1, &mesh));
    axis = &mesh.axis[AXIS_TENSOR];
    return 0;
}

static void tear_down(void) {
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored), cmocka_unit_test(bf16),
                                       cmocka_unit_test(nothing_in_between), cmocka_unit_test(planned)};
    MPI_Comm_size(MPI_COMM_WORLD, &mesh.size);
    return run_on_ranks(tests, set_up, tear_down);
}
