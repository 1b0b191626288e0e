/* Checks for numbers that are not finite, without waiting for a device: the squares of what is checked are
 * added to a few sums in double in its memory, and whoever brings these down sees that a sum is not finite.
 * Squares of floats cannot overflow a double; in a GDN_DOUBLE build numbers beyond 1e154 count as not finite,
 * as they do in the gradient norm, which is a sum of squares too. */
#ifndef GDN_FINITE_H
#define GDN_FINITE_H

#include "kernels/ops.h"

/* Sums that a check adds to: several, so that threads and a GPU's cores share the work. */
enum { FINITE_SUMS = 256 };

/* Adds the squares of x [count] to square [FINITE_SUMS], both in the memory of the device of `ops`. */
void finite_check(const struct ops *ops, long count, const real *x, double *square);

/* Whether all that was checked is finite: square [FINITE_SUMS] on the host. */
bool finite_seen(const double *square);

/* Checks x [count] alone and waits for the answer. `square` [FINITE_SUMS] is scratch on the device,
 * `found` on the host. */
bool finite_now(const struct ops *ops, long count, const real *x, double *square, double *found);

#endif
