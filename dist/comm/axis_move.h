/* How elements get from rank to rank within one blocking call on an axis: MPI on the buffers themselves, MPI
 * on host memory through which a device's buffers go, or the axis's device communicator. Private to dist/.
 * Functions return a status and are collective over the axis; what they leave is in place for operations
 * queued from then on. */
#ifndef GDN_AXIS_MOVE_H
#define GDN_AXIS_MOVE_H

#include "dist/comm/axis.h"

/* x + at[r], count[r] elements, to each rank r; what comes, received[r] elements, to pieces + received_at[r]:
 * the axis's arrays, of which `at` is lost. */
int axis_move_parts(struct axis *axis, const real *x);
/* x + at[r], count[r] elements, from each rank r to all, in place; `total` is their sum. */
int axis_move_rows(struct axis *axis, real *x, long total);
/* x [rows, width] of each rank to out [rows, size, width]. */
int axis_move_columns(struct axis *axis, const real *x, long rows, long width, real *out);
/* x [count] becomes the greatest of all ranks' elementwise; NaN where one is NaN, so that all see it. */
int axis_move_max(struct axis *axis, real *x, long count);

/* Before the host waits in MPI for ranks of this axis: nothing else that they may wait for first is left
 * behind. */
int axis_before_wait(const struct axis *axis);

#endif
