/* What counts as a spike, and that a window that was saved and loaded goes on as if it had not been. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "tests/support/unit.h"
#include "train/step/finite.h"
#include "train/health/spikes.h"

static struct spikes_config config = {.window = 16, .threshold = 6, .most = 10};

/* A loss that falls slowly, with some noise; deviation about 0.1. */
static double loss_at(int i) {
    return 3 - 0.01 * i + 0.1 * sin(7.3 * i);
}
static double norm_at(int i) {
    return 1 + 0.2 * cos(3.1 * i);
}

static void feed(struct spikes *spikes, int from, int end) {
    for (int i = from; i < end; i++) {
        assert_false(spikes_judge(spikes, loss_at(i), norm_at(i)));
        assert_int_equal(spikes->last.kind, SPIKE_NONE);
        spikes_accept(spikes, loss_at(i), norm_at(i));
    }
}

static void near(double a, double b) {
    if (!(fabs(a - b) <= 1e-12 * fabs(b))) fail_msg("%.17g instead of %.17g", a, b);
}

static void off(void **state) {
    (void)state;
    struct spikes_config none = {.window = 0, .threshold = 6};
    struct spikes spikes;
    assert_int_equal(spikes_create(&none, &spikes), 0);
    assert_int_equal(spikes.count, 0);
    assert_null(spikes.values);
    for (int i = 0; i < 40; i++) {
        assert_false(spikes_judge(&spikes, i == 39 ? NAN : 1, 1));
        spikes_accept(&spikes, 1, 1);
    }
    assert_true(spikes_loaded(&spikes));
    assert_int_equal(spikes_so_far(&spikes), 0);
    spikes_free(&spikes);
}

/* z, mean and deviation by hand, of the last 16 values alone. */
static void compared(void **state) {
    (void)state;
    struct spikes spikes;
    assert_int_equal(spikes_create(&config, &spikes), 0);
    feed(&spikes, 0, 41);
    double mean = 0, squares = 0;
    for (int i = 25; i < 41; i++) mean += loss_at(i) / 16;
    for (int i = 25; i < 41; i++) squares += (loss_at(i) - mean) * (loss_at(i) - mean);
    double deviation = sqrt(squares / 16);
    assert_false(spikes_judge(&spikes, mean + 5.9 * deviation, 1));
    assert_true(spikes_judge(&spikes, mean + 6.1 * deviation, 1));
    assert_int_equal(spikes.last.kind, SPIKE_LOSS);
    near(spikes.last.value, mean + 6.1 * deviation);
    assert_true(fabs(spikes.last.mean - mean) < 1e-12);
    assert_true(fabs(spikes.last.deviation - deviation) < 1e-12);
    assert_true(fabs(spikes.last.z - 6.1) < 1e-9);
    assert_false(spikes_judge(&spikes, mean - 60 * deviation, 1)); /* better is no spike */
    assert_false(spikes_judge(&spikes, mean - 60 * deviation, -100));
    assert_true(spikes_judge(&spikes, mean, 100));
    assert_int_equal(spikes.last.kind, SPIKE_NORM);
    assert_true(spikes_judge(&spikes, 4, 1e9)); /* both: the greater z */
    assert_int_equal(spikes.last.kind, SPIKE_NORM);
    assert_true(spikes_judge(&spikes, 1e9, 3));
    assert_int_equal(spikes.last.kind, SPIKE_LOSS);
    /* Judging alone leaves the window as it was: none of these has entered it. */
    assert_true(spikes_judge(&spikes, mean + 6.1 * deviation, 1));
    spikes_free(&spikes);
}

static void not_finite(void **state) {
    (void)state;
    struct spikes spikes;
    assert_int_equal(spikes_create(&config, &spikes), 0);
    const double bad[][2] = {{NAN, 1}, {1, NAN}, {INFINITY, 1}, {1, INFINITY}, {-INFINITY, 1}};
    for (int held = 0; held < 20; held += 19) {
        feed(&spikes, 0, held);
        for (int i = 0; i < 5; i++) {
            assert_true(spikes_judge(&spikes, bad[i][0], bad[i][1]));
            assert_int_equal(spikes.last.kind, SPIKE_NOT_FINITE);
        }
    }
    spikes_free(&spikes);
}

/* Nothing is judged before there are enough values: at least 8, and half a window. */
static void first_steps(void **state) {
    (void)state;
    for (long window = 8; window <= 40; window += 16) {
        struct spikes_config other = {.window = window, .threshold = 6};
        struct spikes spikes;
        int enough = window / 2 > 8 ? (int)window / 2 : 8;
        assert_int_equal(spikes_create(&other, &spikes), 0);
        for (int i = 0; i < enough; i++) {
            assert_false(spikes_judge(&spikes, 1e6, 1e6));
            spikes_accept(&spikes, loss_at(i), norm_at(i));
        }
        assert_true(spikes_judge(&spikes, 1e6, 1));
        spikes_free(&spikes);
    }
}

/* Where nothing changes, the smallest change is no spike; 7% of the mean are. */
static void without_deviation(void **state) {
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct spikes spikes;
        assert_int_equal(spikes_create(&config, &spikes), 0);
        for (int i = 0; i < 20; i++) spikes_accept(&spikes, sign * 2.0, 0);
        assert_false(spikes_judge(&spikes, sign * 2.0, 0));
        assert_false(spikes_judge(&spikes, sign * 2.0 + 0.1, 0));
        assert_true(spikes_judge(&spikes, sign * 2.0 + 0.14, 0));
        assert_true(spikes_judge(&spikes, sign * 2.0, 1e-9)); /* of zeros alone anything is one */
        spikes_free(&spikes);
    }
}

static void saved_and_loaded(void **state) {
    (void)state;
    for (int at = 0; at < 40; at += 3) {
        struct spikes one, two;
        assert_int_equal(spikes_create(&config, &one), 0);
        assert_int_equal(spikes_create(&config, &two), 0);
        feed(&one, 0, at);
        spikes_set_so_far(&one, 3);
        feed(&two, 7, 7 + at / 2); /* which the load overwrites */
        spikes_before_load(&two);
        memcpy(two.values, one.values, (size_t)one.count * sizeof *one.values);
        assert_true(spikes_loaded(&two));
        assert_int_equal(spikes_so_far(&two), 3);
        for (int i = at; i < at + 20; i++) {
            assert_int_equal(spikes_judge(&one, 3.5, 1), spikes_judge(&two, 3.5, 1));
            assert_memory_equal(&one.last, &two.last, sizeof one.last);
            spikes_accept(&one, loss_at(i), norm_at(i));
            spikes_accept(&two, loss_at(i), norm_at(i));
            assert_memory_equal(one.values, two.values, (size_t)one.count * sizeof *one.values);
        }
        spikes_free(&one);
        spikes_free(&two);
    }
}

/* A checkpoint without such a window, or with nonsense in it, leaves an empty one. */
static void loaded_anew(void **state) {
    (void)state;
    struct spikes spikes;
    assert_int_equal(spikes_create(&config, &spikes), 0);
    for (int damage = 0; damage < 4; damage++) {
        const double nonsense[] = {0, 17, NAN, -1};
        feed(&spikes, 0, 20);
        spikes_before_load(&spikes);
        if (damage) {
            spikes.values[0] = 16;
            spikes.values[damage == 3 ? 2 : 1] = nonsense[damage];
        }
        assert_false(spikes_loaded(&spikes));
        assert_false(spikes_judge(&spikes, 1e6, 1e6));
        assert_true(spikes_loaded(&spikes)); /* and is a whole one */
    }
    spikes_free(&spikes);
}

/* One bad number anywhere among any count of good ones is seen, and no good one is mistaken for it. */
static void looks(void **state) {
    (void)state;
    enum { MAX = 3000 };
    const struct ops *const *all = ops_all();
    static real x[MAX];
    static double square[FINITE_SUMS], found[FINITE_SUMS];
    const real bad[] = {(real)NAN, (real)INFINITY, (real)-INFINITY};
    const long counts[] = {0, 1, 2, 255, 256, 257, 1000, MAX};
    for (int b = 0; all[b]; b++) {
        for (int i = 0; i < MAX; i++) x[i] = (real)(i % 2 ? 3e38 : -1e-38);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            assert_true(finite_now(all[b], counts[c], x, square, found));
            if (counts[c]) {
                real before = x[counts[c] - 1];
                x[counts[c] - 1] = (real)NAN;
                assert_false(finite_now(all[b], counts[c], x, square, found));
                x[counts[c] - 1] = before;
            }
            for (long at = 0; at < counts[c]; at += 1 + counts[c] / 50) {
                real before = x[at];
                x[at] = bad[at % 3];
                assert_false(finite_now(all[b], counts[c], x, square, found));
                x[at] = before;
            }
        }
        /* What came before stays seen. */
        x[5] = (real)NAN;
        memset(square, 0, sizeof square);
        finite_check(all[b], 10, x, square);
        x[5] = 0;
        finite_check(all[b], MAX, x, square);
        assert_false(finite_seen(square));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off),
        cmocka_unit_test(compared),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(first_steps),
        cmocka_unit_test(without_deviation),
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(loaded_anew),
        cmocka_unit_test(looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
