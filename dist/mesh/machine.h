/* The ranks of one machine: those that share memory with this rank. All calls are collective over the mesh
 * and fail with GDN_INTERNAL. */
#ifndef GDN_MACHINE_H
#define GDN_MACHINE_H

#include "dist/mesh/mesh.h"

/* Which of them this rank is, by rank. */
int machine_rank(const struct mesh *mesh, int *rank);

/* How many of them give the same number as this rank. */
int machine_count(const struct mesh *mesh, int number, int *ranks);

/* How many they are, and of `bytes` bytes those bits that any of them has set. */
int machine_union(const struct mesh *mesh, const void *mine, int bytes, void *all, int *ranks);

#endif
