/* exp, sigmoid and silu for vectorised loops, against libm in double. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/vector_math.h"
#include "tests/support/unit.h"

static const double EPSILON = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;

/* exp: the polynomial's and the last roundings, together below one unit in the last place. sigmoid and silu
 * add a sum and a division. Below 1.7e-38 a float exp gives 0, so nothing is asked relative to results of
 * that size. */
static void accuracy(void **state) {
    (void)state;
    for (double at = -110; at < 88.7; at += 0.00013) {
        real x = (real)at;
        double e = exp((double)x), s = 1 / (1 + exp(-(double)x)), slope = s * (1 + x * (1 - s));
        if (!(fabs(vector_exp(x) - e) <= EPSILON * e + 1.7e-38)) fail_msg("exp %.9g: %.9g", x, vector_exp(x));
        if (!(fabs(vector_sigmoid(x) - s) <= 2 * EPSILON * s + 1.7e-38))
            fail_msg("sigmoid %.9g: %.9g", x, vector_sigmoid(x));
        if (!(fabs(vector_silu(x) - x * s) <= 3 * EPSILON * fabs(x * s) + 110 * 1.7e-38))
            fail_msg("silu %.9g: %.9g", x, vector_silu(x));
        /* 1 − s and 1 + x·(1 − s) cancel: absolute, in units of s and of x */
        if (!(fabs(vector_silu_slope(x) - slope) <= 4 * EPSILON * (1 + fabs((double)x)) * s + 110 * 1.7e-38))
            fail_msg("silu slope %.9g: %.9g", x, vector_silu_slope(x));
    }
}

static void extremes(void **state) {
    static const double far[] = {-INFINITY, -1e30, -1000};
    (void)state;
    for (int i = 0; i < 3; i++) {
        real low = (real)far[i], high = -low;
        assert_true(vector_exp(low) == 0 && vector_sigmoid(low) == 0 && vector_sigmoid(high) == 1);
        assert_true(isinf(vector_exp(high)) && vector_exp(high) > 0);
        assert_true(vector_silu(high) == high && (isinf(low) || vector_silu(low) == 0));
        assert_true(isinf(low) || (vector_silu_slope(low) == 0 && vector_silu_slope(high) == 1));
    }
    assert_true(vector_exp(0) == 1 && vector_sigmoid(0) == (real)0.5);
    assert_true(isnan(vector_exp((real)NAN)) && isnan(vector_exp(-(real)NAN)));
    assert_true(isnan(vector_sigmoid((real)NAN)) && isnan(vector_silu((real)NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(accuracy), cmocka_unit_test(extremes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
