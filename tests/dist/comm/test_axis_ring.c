/* Buffers that travel round an axis beside other work: what comes is the rank before's, to the bit, and bytes are those
 * of the formulas that plans use. Runs on any number of ranks, and on any device and transport (side.h). */
#include <stdio.h>
#include <stdlib.h>

#include "dist/comm/axis_ring.h"
#include "dist/mpi/mpi_pieces.h"
#include "tests/dist/comm/terms.h"
#include "tests/support/rank_main.h"

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

int rank_main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_the_ring), cmocka_unit_test(planned_ring)};
    /* Once more where all but the shortest go in pieces, as in test_axis. */
    const struct CMUnitTest in_pieces[] = {cmocka_unit_test(round_the_ring)};
    int failed = run_on_ranks(tests, terms_set_up, NULL);
    mpi_piece_max = 1500;
    side_longest();
    return failed + run_on_ranks(in_pieces, NULL, terms_tear_down);
}
