/* Figures of gates: those of parts are those of all, and bins have fixed bounds. */
#include <math.h>
#include <string.h>

#include "kernels/base/random.h"
#include "tests/support/unit.h"
#include "train/deltas/gates.h"

static void check_joined(const struct gates *a, const struct gates *b) {
    assert_true(a->count == b->count && a->min == b->min && a->max == b->max && a->strange == b->strange);
    assert_memory_equal(a->bin, b->bin, sizeof a->bin);
    assert_float_equal(a->mean, b->mean, 1e-15);       /* of numbers up to 1 in a thousand doubles, */
    assert_float_equal(a->squares, b->squares, 1e-12); /* and squares that add up to about 100 */
}

static void gates_of_parts_are_those_of_all(void **state) {
    (void)state;
    enum { ROWS = 100, WIDTH = 12 };
    real x[ROWS * WIDTH];
    struct gates all, part[5], joined;
    for (uint64_t i = 0; i < ROWS * WIDTH; i++)
        x[i] = (real)(0.7 + 0.3 * random_uniform(1, 2, i)); /* far from a mean of 0 */
    x[0] = 0, x[5] = 1, x[20] = NAN;
    gates_measure(x, ROWS, WIDTH, WIDTH, &all);
    assert_true(all.count == ROWS * WIDTH - 1 && all.strange == 1 && all.min == 0 && all.max == 1);
    const int cuts[][5] = {{6, 6}, {3, 3, 3, 3}, {0, 12, 0}, {1, 0, 5, 0, 6}};
    for (int c = 0; c < 4; c++) {
        int at = 0;
        for (int i = 0; i < 5; at += cuts[c][i++])
            gates_measure(cuts[c][i] ? x + at : NULL, ROWS, cuts[c][i], WIDTH, &part[i]);
        gates_join(part, 5, &joined);
        check_joined(&joined, &all);
    }
}

static void gates_fall_into_bins(void **state) {
    (void)state;
    const real x[] = {0, (real)0.03124, (real)0.03125, (real)0.5, (real)0.99999, 1, (real)1.0000002};
    struct gates gates;
    struct delta_record record;
    gates_measure(x, 1, 7, 7, &gates);
    gates_record(&gates, &record);
    const int64_t expected[DELTA_BINS] = {[0] = 2, [1] = 1, [16] = 1, [31] = 3};
    assert_memory_equal(record.gate_histogram, expected, sizeof expected);
    gates_measure(NULL, 1, 7, 7, &gates);
    gates_record(&gates, &record);
    assert_true(record.gate_mean == 0 && record.gate_deviation == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates_of_parts_are_those_of_all),
        cmocka_unit_test(gates_fall_into_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
