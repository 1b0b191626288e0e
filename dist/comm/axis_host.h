/* Sums and gathers over an axis of buffers in the host's memory, whatever device the axis is for: for what is
 * computed on the host alone. Bytes, calls, seconds and the first failure are the axis's, as if it had been
 * called itself (axis.h). */
#ifndef GDN_AXIS_HOST_H
#define GDN_AXIS_HOST_H

#include "dist/comm/axis.h"

struct axis_host {
    struct axis *axis;
    const struct ops *ops; /* the host's */
    real *pieces;          /* [pieces_count] scratch, owned, where the axis's lies on a device */
    long pieces_count;
};

/* Reserves scratch for sums of up to `count` elements: the axis's own, and where that is a device's, some on
 * the host besides. Not collective. GDN_INTERNAL without memory. */
int axis_host_create(struct axis *axis, long count, struct axis_host *out);
void axis_host_free(struct axis_host *host);

/* axis_sum_exact and axis_gather_columns. The first argument is a struct axis_host. */
void axis_host_sum(void *host, real *x, long count);
void axis_host_gather_columns(void *host, const real *x, long rows, long width, real *out);

#endif
