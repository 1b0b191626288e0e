/* Sizes, and what counts as near, for tests of the reference's delta operations. */
#ifndef GDN_TEST_DELTA_FORMULAS_H
#define GDN_TEST_DELTA_FORMULAS_H

#include "tests/kernels/reference/reference.h"

#include <math.h>

enum { T = 3, n = 2, Hd = 4, W = n * Hd, D = 12, G = 3, A = 4, HEADS = 3, LD = 15 };

static const double EPS = 1e-3, SCALE = 0.8;

/* Values here are of order 1 and pass through at most five stored intermediate results, each rounded once:
 * eight roundings of 6e-8 (float) or 1.1e-16 (double), and the same again for sums of up to twelve terms of
 * either sign. */
static inline void near(const char *name, long i, double got, double expected) {
    double tolerance = (sizeof(real) == sizeof(float) ? 1e-6 : 2e-15) * fmax(1, fabs(expected));
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%s[%ld]: %.17g, expected %.17g", name, i, got, expected);
}

#endif
