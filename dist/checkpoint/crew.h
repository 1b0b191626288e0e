/* The ranks that make or read one file together, and what they tell each other meanwhile. Its first rank
 * makes the file. Calls are collective over the crew, but outcomes are agreed on over the whole mesh, so that
 * crews of several files, which work at the same time, go on or give up together. Private to dist/. */
#ifndef GDN_CHECKPOINT_CREW_H
#define GDN_CHECKPOINT_CREW_H

#include "dist/mesh/mesh.h"

struct crew {
    const struct mesh *mesh;
    MPI_Comm comm;
    int rank, size;
};

/* All ranks of the mesh. Nothing to free. */
struct crew crew_all(const struct mesh *mesh);

/* mesh_agree. */
int crew_agree(const struct crew *crew, int status);

/* Replaces each value by its sum modulo 2⁶⁴ over the crew, which is exact; or by the greatest. GDN_INTERNAL.
 */
int crew_sum(const struct crew *crew, uint64_t *values, long count);
int crew_max(const struct crew *crew, int64_t *values, long count);

/* The first rank's bytes to all. GDN_INTERNAL. */
int crew_broadcast(const struct crew *crew, void *bytes, long count);

/* Collects `bytes` of each rank on the first, in rank order: *all (free() it; zero-terminated; of no use on
 * the others) and, on every rank, their number *total and where this rank's begin. Agrees over the mesh on
 * having memory. GDN_INTERNAL. */
int crew_gather(const struct crew *crew, const void *mine, long bytes, void **all, long *total, long *first);

/* Allocates `bytes` zeroed, on every rank, for `what`; NULL on all where one lacks memory (recorded).
 * Collective over the mesh. */
void *crew_allocate(const struct crew *crew, size_t bytes, const char *what);

#endif
