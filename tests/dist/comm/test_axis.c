/* One axis: every sum equals the plain sum in rank order to the bit, gathers and maxima are exact, and the
 * bytes counted from what is handed over equal the formulas that plans use. Runs on any number of ranks, and
 * on any device and transport (side.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/mpi/mpi_pieces.h"
#include "tests/dist/comm/terms.h"
#include "tests/support/rank_main.h"

/* Lengths around multiples of the numbers of ranks, around a block, and of several blocks. */
static const long counts[] = {
    0, 1, 2, 3, 5, 7, 12, 1009, 65537, AXIS_BLOCK - 1, AXIS_BLOCK, AXIS_BLOCK + 12347, 3 * AXIS_BLOCK + 1};
static const long shapes[][2] = {{1, 8},   {2, 8},    {3, 8},     {4, 7},          {5, 1000},
                                 {12, 33}, {1000, 7}, {7, 70001}, {2053, 2048 + 5}};
enum { COUNTS = sizeof counts / sizeof *counts, SHAPES = sizeof shapes / sizeof *shapes };
enum { MAX = 3 * AXIS_BLOCK + 1 };

/* On an emulated device: few of the long ones. */
static bool leave_out(long count) {
    return side_slow() && count > 100000 && !(mesh.size == 2 && count == AXIS_BLOCK + 12347);
}

static void check(const real *x, long first, long end) {
    for (long i = first; i < end; i++)
        if (memcmp(&x[i], &right[i % PERIOD], sizeof *x)) fail_msg("element %ld of %ld…%ld", i, first, end);
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

int rank_main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns), /* first, while there is little scratch */
        cmocka_unit_test(sums),          cmocka_unit_test(sums_of_rows),        cmocka_unit_test(maxima),
        cmocka_unit_test(doubles),       cmocka_unit_test(one_after_the_other), cmocka_unit_test(formulas),
        cmocka_unit_test(failure_stays), cmocka_unit_test(all_to_all),
    };
    /* Once more where all but the shortest go in pieces: as on the data of large models, to the bit. */
    const struct CMUnitTest in_pieces[] = {
        cmocka_unit_test(columns),
        cmocka_unit_test(sums),
        cmocka_unit_test(sums_of_rows),
        cmocka_unit_test(doubles),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(all_to_all),
    };
    int failed = run_on_ranks(tests, terms_set_up, NULL);
    mpi_piece_max = 1500;
    side_longest();
    return failed + run_on_ranks(in_pieces, NULL, terms_tear_down);
}
