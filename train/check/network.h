/* What `gdn check` measures between ranks: sums over each axis of the mesh, and the difference of clocks. */
#ifndef GDN_CHECK_NETWORK_H
#define GDN_CHECK_NETWORK_H

#include "dist/mesh/mesh.h"
#include "kernels/ops.h"

/* The slowest rank's figures of one axis. */
struct axis_speed {
    double latency;       /* seconds of a sum of one element */
    double medium, large; /* bytes a second that a rank hands over, in sums of 64 KiB and of 4 MiB */
    int rank;             /* slowest in the large ones: the lowest rank of its axis */
};

/* Measures sums over an axis, on all of its parallel axes at the same time, as training does them; the same
 * result on all ranks. Takes memory of the device of `ops`. After mesh_use. Collective over all ranks; an
 * axis of one rank is not measured: zeros. GDN_INTERNAL. */
int check_axis(const struct mesh *mesh, struct axis *axis, const struct ops *ops, struct axis_speed *out);

/* How far clocks are apart. */
struct clock_skew {
    double seconds;     /* of the rank that is farthest from rank 0: its clock less rank 0's */
    double uncertainty; /* of that: half of the shortest round trip */
    int rank;
};

/* Estimates each rank's offset from rank 0 by messages to and fro, of which the fastest counts (Cristian
 * 1989). The same result on all ranks. Collective over all ranks. GDN_INTERNAL. */
int check_clocks(const struct mesh *mesh, struct clock_skew *out);

#endif
