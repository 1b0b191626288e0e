/* Buffers that travel round an axis, taken as a ring: each rank hands one to the rank after it and gets one
 * from the rank before it, while it computes with others. As stored, whatever the axis's wire type.
 *
 * Up to AXIS_RING may be under way, and an end is for all of them; between the first beginning and the end no
 * other call of the axis may be made. Collective over the axis, and nothing on an axis of one rank. Failures
 * are the axis's, as in axis.h. A planned axis counts as hidden what work has been done beside (axis_cover).
 */
#ifndef GDN_AXIS_RING_H
#define GDN_AXIS_RING_H

#include "dist/comm/axis.h"

enum { AXIS_RING = 2 };

/* `out` [count] is handed over, `in` [count] comes; nobody touches either until the end. */
void axis_ring_begin(struct axis *axis, const real *out, real *in, long count);
/* All that has begun is there. */
void axis_ring_end(struct axis *axis);

#endif
