/* The exchanges of an axis whose wire type is bf16: what is handed over is rounded into the axis's scratch,
 * and what comes in is added or widened from there. That takes no more scratch than sums of elements as they
 * are stored: two blocks of half the bytes. Private to dist/. Functions return a status and are collective
 * over the axis. */
#ifndef GDN_AXIS_NARROW_H
#define GDN_AXIS_NARROW_H

#include "dist/comm/axis.h"

/* x + at[r], count[r] elements, at most `max`, to each rank r; this rank's part of all becomes sum. */
int axis_sum_narrow(struct axis *axis, const real *x, long max, real *sum);
/* As axis_gather_rows and axis_gather_columns. The first counts its bytes, as it cuts them. */
int axis_gather_narrow_rows(struct axis *axis, real *x, long rows, long width);
int axis_gather_narrow_columns(struct axis *axis, const real *x, long rows, long width, real *out);

#endif
