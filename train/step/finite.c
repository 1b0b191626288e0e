#include "train/step/finite.h"

#include <math.h>

void finite_check(const struct ops *ops, long count, const real *x, double *square) {
    if (count > 0) ops->add_squares(0, count, (count + FINITE_SUMS - 1) / FINITE_SUMS, x, square);
}

bool finite_seen(const double *square) {
    bool all = true;
    for (int i = 0; i < FINITE_SUMS; i++) all = all && isfinite(square[i]);
    return all;
}

bool finite_now(const struct ops *ops, long count, const real *x, double *square, double *found) {
    ops->device->clear(square, FINITE_SUMS * sizeof *square);
    finite_check(ops, count, x, square);
    ops->device->download(found, square, FINITE_SUMS * sizeof *square);
    return finite_seen(found);
}
