/* Series of a report: later points supersede, quantiles, bins, smoothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit.h"
#include "train/report/figure.h"
#include "train/report/read.h"

static void later_points_supersede(void **state) {
    (void)state;
    struct series s = {0};
    for (int i = 0; i < 1000; i++) assert_int_equal(series_add(&s, i, 1), 0);
    assert_int_equal(series_add(&s, 700, 2), 0);
    assert_int_equal(s.count, 701);
    assert_true(s.x[700] == 700 && s.y[700] == 2 && s.x[699] == 699 && s.y[699] == 1);
    assert_int_equal(series_add(&s, 500, NAN), 0); /* what is not known supersedes too */
    assert_int_equal(s.count, 500);
    assert_true(series_sum(&s) == 500);
    series_cut(&s, 100.5);
    assert_int_equal(s.count, 101);
    series_free(&s);
}

static void quantiles_interpolate(void **state) {
    (void)state;
    struct series s = {0};
    double q;
    assert_int_equal(series_quantile(&s, 0.5, &q), 0);
    assert_true(isnan(q));
    static const double y[] = {5, 1, 4, 2, 3};
    for (int i = 0; i < 5; i++) series_push(&s, i, y[i]);
    series_quantile(&s, 0.5, &q);
    assert_true(q == 3);
    series_quantile(&s, 0.9, &q);
    assert_true(fabs(q - 4.6) < 1e-12);
    series_quantile(&s, 1, &q);
    assert_true(q == 5);
    series_free(&s);
}

/* Few bins hold all points: their ends are the greatest and the least of all, their means the mean. */
static void bins_lose_no_extremes(void **state) {
    (void)state;
    struct series s = {0};
    for (int i = 0; i < 200000; i++)
        series_push(&s, 3 * i, sin(i * 1e-4) + (i == 123456 ? 50 : i == 77 ? -50 : 0));
    struct bins bins;
    assert_int_equal(series_bins(&s, 800, 1, &bins), 0);
    assert_false(bins.points);
    assert_int_equal(bins.count, 800);
    double low = 0, high = 0, mean = 0;
    for (long i = 0; i < bins.count; i++) {
        low = fmin(low, bins.bin[i].low), high = fmax(high, bins.bin[i].high), mean += bins.bin[i].y / 800;
        assert_true(bins.bin[i].low <= bins.bin[i].y && bins.bin[i].y <= bins.bin[i].high);
        if (i) assert_true(bins.bin[i].x > bins.bin[i - 1].x);
    }
    assert_true(high > 49 && low < -49);
    assert_true(fabs(mean - series_sum(&s) / 200000) < 1e-6);
    bins_free(&bins);
    /* Room for all: each its own. */
    s.count = 100;
    assert_int_equal(series_bins(&s, 100, 1, &bins), 0);
    assert_true(bins.points && bins.count == 100 && bins.bin[77].y == s.y[77] && bins.bin[77].x == 3 * 77);
    bins_free(&bins);
    series_free(&s);
}

static void smoothing_keeps_lines_straight(void **state) {
    (void)state;
    struct series s = {0};
    for (int i = 0; i < 101; i++) series_push(&s, i, 1e6 + 2 * i);
    struct bins bins;
    assert_int_equal(series_bins(&s, 200, 21, &bins), 0);
    for (int i = 0; i < 101; i++) assert_true(fabs(bins.bin[i].y - s.y[i]) < 1e-6);
    bins_free(&bins);
    for (int i = 0; i < 101; i++) s.y[i] = i % 2;
    assert_int_equal(series_bins(&s, 200, 21, &bins), 0);
    for (int i = 10; i < 90; i++) assert_true(fabs(bins.bin[i].y - 0.5) < 0.03);
    bins_free(&bins);
    series_free(&s);
}

/* The last point is noise like any other: a curve neither ends in it nor in the mean of the window before. */
static void smoothing_goes_to_the_end(void **state) {
    (void)state;
    struct series s = {0};
    for (int i = 0; i < 1000; i++) series_push(&s, i, 5 - 1e-3 * i + (i % 2 ? 1 : -1));
    s.y[999] = 9;
    struct bins bins;
    assert_int_equal(series_bins(&s, 2000, 101, &bins), 0);
    /* Of 101 points one is 4 higher than the line and its noise: by least squares the end follows it by
     * 4 / 101 + 4 · 50² / (101 · 102 · 100 / 12) = 0.156 there, and by the noise's imbalance a fiftieth. */
    for (int i = 949; i < 1000; i++) assert_true(fabs(bins.bin[i].y - (5 - 1e-3 * i)) < 0.18);
    assert_true(fabs(bins.bin[949].y - bins.bin[950].y) < 0.01); /* one curve, without a jump */
    bins_free(&bins);
    series_free(&s);
}

static void all_at_one_step(void **state) {
    (void)state;
    struct series s = {0};
    for (int i = 0; i < 50; i++) series_push(&s, 7, i);
    struct bins bins;
    assert_int_equal(series_bins(&s, 10, 5, &bins), 0);
    assert_true(bins.count == 1 && bins.bin[0].low == 0 && bins.bin[0].high == 49);
    bins_free(&bins);
    series_free(&s);
}

static void spreads_are_ordered(void **state) {
    (void)state;
    struct series s = {0}, out[2];
    for (int i = 0; i < 1000; i++) series_push(&s, i, i % 100);
    static const double q[] = {0.5, 0.95};
    assert_int_equal(series_spread(&s, 10, 20, q, 2, out), 0);
    assert_true(out[0].count == 10 && out[1].count == 10);
    for (int i = 0; i < 10; i++) {
        assert_true(fabs(out[0].y[i] - 49.5) < 1e-9 && fabs(out[1].y[i] - 94.05) < 1e-9);
        assert_true(fabs(out[0].x[i] - (100 * i + 49.5)) < 1e-9);
    }
    series_free(&out[0]), series_free(&out[1]);
    s.count = 7; /* fewer than a stretch needs: one */
    assert_int_equal(series_spread(&s, 10, 20, q, 2, out), 0);
    assert_true(out[0].count == 1 && out[0].y[0] == 3);
    series_free(&out[0]), series_free(&out[1]);
    series_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_points_supersede),    cmocka_unit_test(quantiles_interpolate),
        cmocka_unit_test(bins_lose_no_extremes),     cmocka_unit_test(smoothing_keeps_lines_straight),
        cmocka_unit_test(smoothing_goes_to_the_end), cmocka_unit_test(all_at_one_step),
        cmocka_unit_test(spreads_are_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
