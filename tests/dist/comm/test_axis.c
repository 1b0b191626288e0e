/* One axis: every sum equals the plain sum in rank order to the bit, gathers and maxima are exact, and the
 * bytes counted from what is handed over equal the formulas that plans use. Runs on any number of ranks, and
 * on any device and transport (side.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/comm/axis_ring.h"
#include "dist/mpi/mpi_pieces.h"
#include "kernels/base/random.h"
#include "tests/dist/comm/side.h"
#include "tests/support/rank_main.h"

static struct mesh mesh;
static struct axis *axis; /* the data axis: all ranks */

/* Lengths around multiples of the numbers of ranks, around a block, and of several blocks. */
static const long counts[] = {
    0, 1, 2, 3, 5, 7, 12, 1009, 65537, AXIS_BLOCK - 1, AXIS_BLOCK, AXIS_BLOCK + 12347, 3 * AXIS_BLOCK + 1};
static const long shapes[][2] = {{1, 8},   {2, 8},    {3, 8},     {4, 7},          {5, 1000},
                                 {12, 33}, {1000, 7}, {7, 70001}, {2053, 2048 + 5}};
enum { COUNTS = sizeof counts / sizeof *counts, SHAPES = sizeof shapes / sizeof *shapes };
enum { MAX = 3 * AXIS_BLOCK + 1, PERIOD = 4099 }; /* terms repeat with a prime period, to be quick */

/* On an emulated device: few of the long ones. */
static bool leave_out(long count) {
    return side_slow() && count > 100000 && !(mesh.size == 2 && count == AXIS_BLOCK + 12347);
}

static real *terms, right[PERIOD]; /* terms [ranks, PERIOD] */

/* Of very different sizes, so that the order of addition shows in the bits. */
static void draw(void) {
    terms = malloc((size_t)mesh.size * PERIOD * sizeof *terms);
    for (int r = 0; r < mesh.size; r++)
        for (int i = 0; i < PERIOD; i++) {
            double x = random_normal(7, (uint64_t)r, (uint64_t)i);
            terms[r * PERIOD + i] = (real)(random_bits(8, (uint64_t)r, (uint64_t)i) % 2 ? x * 1e5 : x);
        }
    long order_matters = 0;
    for (int i = 0; i < PERIOD; i++) {
        right[i] = terms[i];
        for (int r = 1; r < mesh.size; r++) right[i] += terms[r * PERIOD + i];
        real backwards = terms[(mesh.size - 1) * PERIOD + i];
        for (int r = mesh.size - 2; r >= 0; r--) backwards += terms[r * PERIOD + i];
        order_matters += backwards != right[i];
    }
    if (mesh.size > 2) assert_true(order_matters > 0); /* else these tests could not tell */
}

/* This rank's terms, on the host and as a buffer of the axis. */
struct buffer {
    real *host, *x; /* [count + 1]: nothing may be written behind the end */
    long count;
};

static struct buffer mine(long count) {
    struct buffer b = {.host = malloc((size_t)(count + 1) * sizeof *b.host), .count = count};
    for (long i = 0; i < count; i++) b.host[i] = terms[mesh.rank * PERIOD + i % PERIOD];
    b.host[count] = 12345;
    b.x = side_make(b.host, count + 1);
    return b;
}

static void put(const struct buffer *b) {
    side_put(b->x, b->host, b->count + 1);
}

static void get(const struct buffer *b) {
    side_get(b->host, b->x, b->count + 1);
    assert_true(b->host[b->count] == 12345);
}

static void drop(struct buffer *b) {
    side_drop(b->x);
    free(b->host);
}

static void check(const real *x, long first, long end) {
    for (long i = first; i < end; i++)
        if (memcmp(&x[i], &right[i % PERIOD], sizeof *x)) fail_msg("element %ld of %ld…%ld", i, first, end);
}

/* Whether MPI has been given no more at a time since the last call than it is to be given. */
static void check_pieces(long min) {
    assert_true(side_longest() <= (min > mpi_piece_max ? min : mpi_piece_max));
}

/* What the axis has counted since the last call. */
static int64_t counted(void) {
    static int64_t before;
    int64_t now = axis->bytes - before;
    before = axis->bytes;
    return now;
}

static void sums(void **state) {
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        long n = counts[c];
        if (leave_out(n)) continue;
        struct buffer b = mine(n);
        assert_int_equal(axis_reserve(axis, n), 0);
        counted();
        axis_sum(axis, b.x, n);
        get(&b);
        assert_int_equal(axis->status, 0);
        check(b.host, 0, n);
        check_pieces(0);
        assert_int_equal(counted(), axis_formula_sum(mesh.size, mesh.rank, n));
        drop(&b);
    }
}

static void sums_of_rows(void **state) {
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        long rows = shapes[s][0], width = shapes[s][1], n = rows * width;
        if (leave_out(n)) continue;
        struct buffer b = mine(n);
        assert_int_equal(axis_reserve(axis, n), 0);
        counted();
        axis_sum_rows(axis, b.x, rows, width);
        get(&b);
        assert_int_equal(axis->status, 0);
        long first = axis_first_row(axis, rows, mesh.rank), end = axis_first_row(axis, rows, mesh.rank + 1);
        check(b.host, first * width, end * width);
        assert_int_equal(counted(), axis_formula_sum_rows(mesh.size, mesh.rank, rows, width));
        for (long i = 0; i < n; i++)
            if (i < first * width || i >= end * width) b.host[i] = NAN; /* undefined: must come from others */
        put(&b);
        axis_gather_rows(axis, b.x, rows, width);
        get(&b);
        assert_int_equal(axis->status, 0);
        check(b.host, 0, n);
        check_pieces(0);
        assert_int_equal(counted(), axis_formula_gather_rows(mesh.size, mesh.rank, rows, width));
        drop(&b);
    }
}

static void columns(void **state) {
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        long rows = shapes[s][0], width = shapes[s][1], n = rows * width, line = width * mesh.size;
        if (leave_out(n)) continue;
        assert_int_equal(axis_reserve(axis, line), 0); /* a row */
        struct buffer b = mine(n), all = mine(rows * line);
        const real *out = all.host;
        counted();
        axis_gather_columns(axis, b.x, rows, width, all.x);
        get(&all);
        assert_int_equal(axis->status, 0);
        check_pieces(line); /* a row at least */
        assert_int_equal(counted(), axis_formula_gather_columns(mesh.size, rows, width));
        for (long t = 0; t < rows; t++)
            for (long j = 0; j < line; j++)
                if (out[t * line + j] != terms[j / width * PERIOD + (t * width + j % width) % PERIOD])
                    fail_msg("row %ld, column %ld of %ld x %ld", t, j, rows, width);
        drop(&all);
        drop(&b);
    }
}

static void all_to_all(void **state) {
    (void)state;
    static const long lengths[] = {0, 1, 7, 1009, 65537};
    for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
        const long part = lengths[c], n = part * mesh.size;
        struct buffer b = mine(n), all = mine(n);
        const real *out = all.host;
        counted();
        axis_exchange(axis, b.x, part, all.x);
        get(&all);
        assert_int_equal(axis->status, 0);
        check_pieces(0);
        assert_int_equal(counted(), axis_formula_exchange(mesh.size, part));
        for (long i = 0; i < n; i++)
            if (out[i] != terms[i / part * PERIOD + (mesh.rank * part + i % part) % PERIOD])
                fail_msg("element %ld of %ld", i, n);
        drop(&all);
        drop(&b);
    }
}

/* Each rank's buffer goes all the way round, and beside it one that changes on the way, a step behind. */
static void round_the_ring(void **state) {
    (void)state;
    static const long lengths[] = {0, 1, 7, 1009, 65537};
    const int ranks = mesh.size;
    for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
        const long n = lengths[c];
        struct buffer own = mine(n), came = mine(n), sum = mine(n), next = mine(n);
        real *block = own.x, *other = came.x, *leaves = sum.x, *arrives = next.x;
        counted();
        for (int step = 0; step + 1 < ranks; step++) {
            axis_ring_begin(axis, block, other, n);
            if (step > 0) axis_ring_begin(axis, leaves, arrives, n);
            axis_ring_end(axis);
            real *was = block;
            block = other, other = was;
            if (step > 0) was = leaves, leaves = arrives, arrives = was;
            axis->ops->add(n, block, leaves); /* of each rank's sum so far the next one's term */
        }
        assert_int_equal(axis->status, 0);
        const int messages = ranks > 1 ? 2 * ranks - 3 : 0;
        assert_int_equal(counted(), messages * n * (int64_t)sizeof(real));
        side_get(own.host, block, n + 1);
        for (long i = 0; i < n; i++) /* the next rank's, which is the last to come */
            if (own.host[i] != terms[(mesh.rank + 1) % ranks * PERIOD + i % PERIOD])
                fail_msg("element %ld of %ld", i, n);
        side_get(sum.host, leaves, n + 1);
        for (long i = 0; i < n && ranks == 2; i++)
            if (sum.host[i] != terms[i % PERIOD] + terms[PERIOD + i % PERIOD])
                fail_msg("sum %ld of %ld", i, n);
        for (long i = 0; i < n && ranks == 3; i++) {
            /* That of the rank before: its own, what it got; and what this one got. */
            const real *x = terms + i % PERIOD;
            const int before = (mesh.rank + 2) % 3;
            const real right_one =
                x[before * PERIOD] + x[(before + 2) % 3 * PERIOD] + x[(mesh.rank + 1) % 3 * PERIOD];
            if (sum.host[i] != right_one) fail_msg("sum %ld of %ld", i, n);
        }
        check_pieces(0);
        drop(&own), drop(&came), drop(&sum), drop(&next);
    }
    if (ranks == 1) return;
    struct buffer b = mine(3), in = mine(3);
    for (int i = 0; i <= AXIS_RING; i++) axis_ring_begin(axis, b.x, in.x, i < AXIS_RING);
    assert_int_equal(axis->status, GDN_INTERNAL); /* too many */
    axis->status = 0;
    axis_ring_end(axis);
    axis_ring_begin(axis, b.x, in.x, 3);
    axis_sum(axis, b.x, 3); /* in between */
    assert_int_equal(axis->status, GDN_INTERNAL);
    axis->status = 0;
    axis_ring_end(axis);
    assert_int_equal(axis->status, 0);
    drop(&b), drop(&in);
}

static double work;
static double work_so_far(void) {
    return work;
}

/* What goes round beside work is hidden, both buffers by the same. */
static void planned_ring(void **state) {
    (void)state;
    struct axis_cover cover = {.work = work_so_far};
    struct axis p = axis_planned("context", 4, 1);
    p.cover = &cover;
    axis_ring_begin(&p, NULL, NULL, 100);
    work += 7;
    axis_ring_begin(&p, NULL, NULL, 10);
    work += 5;
    axis_ring_end(&p);
    axis_ring_begin(&p, NULL, NULL, 1000);
    axis_ring_end(&p);
    assert_int_equal(p.bytes, 1110 * (int64_t)sizeof(real));
    assert_int_equal(p.calls, 3);
    assert_int_equal(cover.hidden_bytes, 110 * (int64_t)sizeof(real));
    assert_int_equal(cover.hidden_calls, 2);
    assert_true(cover.covering == 5);
}

static void maxima(void **state) {
    (void)state;
    static const long lengths[] = {0, 1, 2, 1009, PERIOD, AXIS_BLOCK / 2 + 17};
    for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
        long n = lengths[c];
        if (leave_out(n)) continue;
        struct buffer b = mine(n);
        const real *x = b.host;
        if (n > 6 && mesh.rank == mesh.size - 1) b.host[5] = NAN;
        if (n > 6 && mesh.rank == 0) b.host[6] = NAN;
        put(&b);
        assert_int_equal(axis_reserve(axis, n * mesh.size), 0);
        counted();
        axis_max(axis, b.x, n);
        get(&b);
        assert_int_equal(axis->status, 0);
        assert_int_equal(counted(), axis_formula_max(mesh.size, n));
        if (n > 6) assert_true(isnan(x[5]) && isnan(x[6]));
        for (long i = 0; i < n; i++) {
            real max = terms[i % PERIOD];
            for (int r = 1; r < mesh.size; r++) max = (real)fmax(max, terms[r * PERIOD + i % PERIOD]);
            if (i != 5 && i != 6 && x[i] != max) fail_msg("element %ld of %ld", i, n);
        }
        drop(&b);
    }
}

static void doubles(void **state) {
    (void)state;
    static const int lengths[] = {0, 1, 63, 64, 65, 1009};
    double values[1009], all[8 * 1009];
    for (size_t c = 0; c < sizeof lengths / sizeof *lengths; c++) {
        int n = lengths[c];
        for (int i = 0; i < n; i++) values[i] = terms[mesh.rank * PERIOD + i] / 3.0;
        counted();
        axis_gather_doubles(axis, values, n, all);
        check_pieces(0);
        assert_int_equal(counted(), axis_formula_gather_doubles(mesh.size, n));
        axis_sum_doubles(axis, values, n);
        assert_int_equal(counted(), axis_formula_sum_doubles(mesh.size, n));
        assert_int_equal(axis->status, 0);
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int r = 0; r < mesh.size; r++) {
                assert_true(all[r * n + i] == terms[r * PERIOD + i] / 3.0);
                sum = r ? sum + all[r * n + i] : all[i];
            }
            assert_memory_equal(&values[i], &sum, sizeof sum);
        }
    }
}

/* Calls follow each other without a look in between, and on what the ones before left. */
static void one_after_the_other(void **state) {
    (void)state;
    enum { N = 1009, TIMES = 20 };
    struct buffer b[TIMES];
    for (int i = 0; i < TIMES; i++) b[i] = mine(N);
    assert_int_equal(axis_reserve(axis, N), 0);
    for (int i = 0; i < TIMES; i++) {
        axis_sum(axis, b[i].x, N);
        if (i % 2) axis->ops->copy(N, b[i - 1].x, b[i].x);
        axis_sum_rows(axis, b[i].x, N, 1);
        axis_gather_rows(axis, b[i].x, N, 1);
    }
    for (int i = 0; i < TIMES; i++) {
        get(&b[i]);
        for (int k = 0; k < N; k++) {
            real expected = right[k];
            for (int twice = 0; twice < 1 + i % 2 && mesh.size > 1; twice++) {
                real term = expected;
                for (int r = 1; r < mesh.size; r++) expected += term;
            }
            if (b[i].host[k] != expected) fail_msg("call %d, element %d", i, k);
        }
        drop(&b[i]);
    }
    assert_int_equal(axis->status, 0);
}

/* All parts together send what the whole does, and a planned axis counts as the real one does, without
 * buffers. */
static void formulas(void **state) {
    (void)state;
    for (int size = 1; size <= 9; size++)
        for (int c = 0; c < COUNTS; c++) {
            int64_t rows = 0, gathered = 0;
            for (int r = 0; r < size; r++) {
                struct axis planned = axis_planned("tensor", size, r);
                int64_t before = 0, n = counts[c];
                axis_sum_rows(&planned, NULL, n, 3);
                rows += planned.bytes;
                assert_int_equal(planned.bytes, axis_formula_sum_rows(size, r, n, 3));
                before = planned.bytes;
                axis_gather_rows(&planned, NULL, n, 3);
                gathered += planned.bytes - before;
                assert_int_equal(planned.bytes - before, axis_formula_gather_rows(size, r, n, 3));
                before = planned.bytes;
                axis_sum(&planned, NULL, n);
                assert_int_equal(planned.bytes - before, axis_formula_sum(size, r, n));
                before = planned.bytes;
                axis_max(&planned, NULL, n);
                assert_int_equal(planned.bytes - before, axis_formula_max(size, n));
                before = planned.bytes;
                if (size > 1) axis_gather_columns(&planned, NULL, n, 5, NULL);
                assert_int_equal(planned.bytes - before, axis_formula_gather_columns(size, n, 5));
                before = planned.bytes;
                if (size > 1) axis_exchange(&planned, NULL, n, NULL);
                assert_int_equal(planned.bytes - before, axis_formula_exchange(size, n));
                before = planned.bytes;
                axis_sum_doubles(&planned, NULL, 3);
                if (size > 1) axis_gather_doubles(&planned, NULL, 4, NULL);
                assert_int_equal(planned.bytes - before, 7 * 8 * (size - 1));
                assert_int_equal(axis_reserve(&planned, n), 0);
                assert_int_equal(planned.status, 0);
                assert_null(planned.pieces);
            }
            assert_int_equal(rows, (size - 1) * counts[c] * 3 * (int64_t)sizeof(real));
            assert_int_equal(gathered, rows);
        }
}

/* Too little scratch is an error that stays, and later calls do nothing. */
static void failure_stays(void **state) {
    (void)state;
    struct mesh m;
    real host[100] = {1}, *x = side_make(host, 100);
    assert_int_equal(side_mesh(0, 1, 1, &m), 0);
    axis_sum(&m.axis[AXIS_DATA], x, 100);
    if (mesh.size > 1) {
        assert_int_equal(m.axis[AXIS_DATA].status, GDN_INTERNAL);
        assert_non_null(strstr(gdn_failure(), "data axis, but axis_reserve"));
        gdn_failure_clear();
        assert_int_equal(axis_reserve(&m.axis[AXIS_DATA], 100), 0);
        axis_sum(&m.axis[AXIS_DATA], x, 100);
        assert_int_equal(m.axis[AXIS_DATA].status, GDN_INTERNAL);
        side_get(host, x, 100);
        assert_true(host[0] == 1);
    }
    side_drop(x);
    mesh_free(&m);
}

static int set_up(void) {
    TRY(side_mesh(0, 1, 1, &mesh));
    axis = &mesh.axis[AXIS_DATA];
    draw();
    return 0;
}

static void tear_down(void) {
    free(terms);
    mesh_free(&mesh);
}

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns), /* first, while there is little scratch */
        cmocka_unit_test(sums),
        cmocka_unit_test(sums_of_rows),
        cmocka_unit_test(maxima),
        cmocka_unit_test(doubles),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(formulas),
        cmocka_unit_test(failure_stays),
        cmocka_unit_test(all_to_all),
        cmocka_unit_test(round_the_ring),
        cmocka_unit_test(planned_ring),
    };
    /* Once more where all but the shortest go in pieces: as on the data of large models, to the bit. */
    const struct CMUnitTest in_pieces[] = {
        cmocka_unit_test(columns),
        cmocka_unit_test(sums),
        cmocka_unit_test(sums_of_rows),
        cmocka_unit_test(doubles),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(all_to_all),
        cmocka_unit_test(round_the_ring),
    };
    int failed = run_on_ranks(tests, set_up, NULL);
    mpi_piece_max = 1500;
    side_longest();
    return failed + run_on_ranks(in_pieces, NULL, tear_down);
}
