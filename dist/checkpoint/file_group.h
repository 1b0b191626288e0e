/* The ranks that make or read one file together, and what they tell each other meanwhile. Its first rank
 * makes the file. Calls are collective over the file group, but outcomes are agreed on over the whole mesh,
 * so that file groups of several files, which work at the same time, go on or give up together. Private to
 * dist/. */
#ifndef GDN_CHECKPOINT_FILE_GROUP_H
#define GDN_CHECKPOINT_FILE_GROUP_H

#include "dist/mesh/mesh.h"

struct file_group {
    const struct mesh *mesh;
    MPI_Comm comm;
    int rank, size;
};

/* All ranks of the mesh. Nothing to free. */
struct file_group file_group_all(const struct mesh *mesh);

/* mesh_agree. */
int file_group_agree(const struct file_group *group, int status);

/* Replaces each value by its sum modulo 2⁶⁴ over the file group, which is exact; or by the greatest.
 * GDN_INTERNAL. */
int file_group_sum(const struct file_group *group, uint64_t *values, long count);
int file_group_max(const struct file_group *group, int64_t *values, long count);

/* The first rank's bytes to all. GDN_INTERNAL. */
int file_group_broadcast(const struct file_group *group, void *bytes, long count);

/* Collects `bytes` of each rank on the first, in rank order: *all (free() it; zero-terminated; of no use on
 * the others) and, on every rank, their number *total and where this rank's begin. Agrees over the mesh on
 * having memory. GDN_INTERNAL. */
int file_group_gather(const struct file_group *group, const void *mine, long bytes, void **all, long *total,
                      long *first);

/* Allocates `bytes` zeroed, on every rank, for `what`; NULL on all where one lacks memory (recorded).
 * Collective over the mesh. */
void *file_group_allocate(const struct file_group *group, size_t bytes, const char *what);

#endif
