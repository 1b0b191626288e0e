/* The ranks of a command: MPI's beginning and end, and how the ranks of a host share its cores. */
#ifndef GDN_RUN_RANKS_H
#define GDN_RUN_RANKS_H

#include <stdio.h>

#include "dist/mesh/mesh.h"

/* Starts MPI and puts all ranks on one data axis; both ends of MPI are guarded (train/health/guard.h).
 * ranks_end follows, whatever this returns. Collective. */
int ranks_begin(struct mesh *mesh);

/* Prints the words of a failure (`status` not 0) on the printing rank, frees the mesh and ends MPI. Returns
 * `status`. Collective. */
int ranks_end(struct mesh *mesh, int status);

/* Ends the job at once where this rank has failed alone, in the middle of work that others wait for: prints
 * its words, whichever rank it is, and calls MPI_Abort. Not collective. */
void ranks_abort(const struct mesh *mesh, int status);

/* Lays the ranks out anew; where that fails, they stay as they were. Collective; fails like mesh_create. */
int ranks_arrange(struct mesh *mesh, const int size[AXES]);

/* Sets OpenMP's thread count to the host's cores that its ranks may use over the number of those ranks,
 * unless the user has set OMP_NUM_THREADS. Says so on `log` (NULL: silent) where that changes or passes the
 * cores. Collective. GDN_INPUT where OMP_NUM_THREADS is more than MOST_THREADS. */
int ranks_share_cores(const struct mesh *mesh, FILE *log);

/* Prints how the ranks lie on the machines: which axis stays within a NUMA domain or a node, which crosses
 * nodes. `out` is NULL on all ranks but 0. Collective. */
void ranks_describe(const struct mesh *mesh, FILE *out);

/* Where a rank runs. */
struct rank_place {
    char host[64];
    int domain; /* NUMA domain that it may run on; −1: more than one, or not known */
};

/* The words of ranks_describe for ranks at place [their product], by rank. Not collective. */
void ranks_describe_places(const struct rank_place *place, const int size[AXES], FILE *out);

#endif
