/* How elements get from rank to rank within one blocking call on an axis: MPI on the buffers themselves, MPI
 * on host memory through which a device's buffers go, or the axis's device communicator. Private to dist/.
 * Functions return a status and are collective over the axis; what they leave is in place for operations
 * queued from then on. */
#ifndef GDN_AXIS_MOVE_H
#define GDN_AXIS_MOVE_H

#include "dist/comm/axis.h"

/* First row of rank `index` of `size`. */
static inline long axis_first_of(long rows, int index, int size) {
    return rows * index / size;
}
/* Fills in the axis's `at` and `count`: of each rank's part of x [rows, width] the elements [from, from +
 * max), as far as it has so many. */
void axis_find_pieces(struct axis *axis, long rows, long width, long from, long max);

/* The axis's `received`: from every rank as many elements as this rank's own part has, one part behind the other. */
void axis_expect_own(struct axis *axis);

/* The element at[r] of x, and count[r] from there on, to each rank r; what comes, received[r] elements, to
 * `in` from received_at[r] on: the axis's arrays, of which `at` is lost. All are in that type. */
int axis_move_parts(struct axis *axis, const void *x, void *in, enum wire wire);
/* The element at[r] of x, and count[r] from there on, from each rank r to all, in place; `total` is their
 * sum. */
int axis_move_rows(struct axis *axis, void *x, long total, enum wire wire);
/* The same two over the axis's device communicator, begun alone: what comes is there, and what goes may be written
 * over, once the ticket has been joined. The axis's arrays are free again. */
int axis_begin_device_parts(struct axis *axis, const void *x, void *in, enum wire wire);
int axis_begin_device_rows(struct axis *axis, void *x, enum wire wire);
/* x [rows, width] of each rank to out [rows, size, width]. */
int axis_move_columns(struct axis *axis, const real *x, long rows, long width, real *out);
/* x [count] becomes the greatest of all ranks' elementwise; NaN where one is NaN, so that all see it. */
int axis_move_max(struct axis *axis, real *x, long count);

/* Before the host waits in MPI for ranks of this axis: nothing else that they may wait for first is left
 * behind. */
int axis_before_wait(const struct axis *axis);

#endif
