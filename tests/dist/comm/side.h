/* The side under test: which device buffers lie on (tests/support/backend.h) and how they travel.
 * GDN_TEST_TRANSPORT: "staged", "nccl", or not set. Test programs hold what they compare on the host, and
 * give and take it here. */
#ifndef GDN_TESTS_SIDE_H
#define GDN_TESTS_SIDE_H

#include "dist/mesh/mesh.h"

/* The backend, "cpu" where none is named. */
const struct ops *side_ops(void);
/* Whether that is an emulated device, for which large cases take too long. */
bool side_slow(void);
/* mesh_create and mesh_use. */
int side_mesh(int data, int tensor, int pipeline, struct mesh *out);

/* A copy of host [count] on the device, or zeros where it is NULL; side_drop frees it. */
real *side_make(const real *host, long count);
void side_drop(real *x);
void side_put(real *x, const real *host, long count);
/* The greatest count or displacement that MPI was given since the last call of this, by the calls that are
 * cut into pieces (dist/mpi/mpi_pieces.h). */
long side_longest(void);

/* Waits for the device. */
void side_get(real *host, const real *x, long count);

#endif
