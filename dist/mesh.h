/* The mesh: MPI's ranks laid out on (data, tensor, pipeline) axes, the communicators that go with it, and the
 * sums that travel over them. Sums add in rank order, so a result does not depend on the call that made it.
 *
 * An MPI call that fails returns GDN_INTERNAL with MPI's words; the job cannot go on after that, since the
 * other ranks may be waiting in the same call. */
#ifndef GDN_MESH_H
#define GDN_MESH_H

#include <mpi.h>

#include "kernels/base/real.h"
#include "kernels/base/status.h"

struct mesh {
    int rank, size;             /* MPI's, of `world` */
    int data, tensor, pipeline; /* lengths of the axes */
    int data_index;             /* this rank's place on the data axis */
    MPI_Comm world;             /* a duplicate of MPI_COMM_WORLD */
    MPI_Comm data_axis;
    char host[64];

    /* Owned by the mesh, for its sums. */
    double *gathered;          /* [data, MESH_SUM_PIECE] */
    real *pieces;              /* [pieces_count] parts of gradients received from every rank; mesh_reserve */
    long pieces_count;         /* elements */
    int *part_count, *part_at; /* [data] the part of a block that each rank adds: elements, first element */
    int *received, *received_at; /* [data] each rank's version of our part: elements, place in `pieces` */
};

enum {
    MESH_SUM_PIECE = 64,      /* doubles that mesh_sum gathers in one go */
    MESH_BLOCK = 4 * 1048576, /* elements that mesh_sum_gradients exchanges in one go: 16 MiB of floats */
};

/* Lays all ranks out; `data` 0 takes all ranks left over. Collective over all ranks, after MPI_Init.
 * GDN_INPUT, the same on every rank, where the product of the axes is not the number of ranks (the message
 * names both and mesh.data etc.), or where this version cannot honour an axis. After a failure there is
 * nothing to free. */
int mesh_create(int data, int tensor, int pipeline, struct mesh *out);
/* A mesh of this process alone, which needs no MPI_Init: for commands that run as one process. Nothing to
 * free. */
struct mesh mesh_alone(void);
void mesh_free(struct mesh *mesh);

/* Agrees on an outcome: collective over all ranks, each giving its own status. Returns the status of the
 * lowest failing rank on all ranks (0 where none failed) and makes that rank's recorded words, prefixed with
 * "rank R on HOST: " where there is more than one rank, every rank's gdn_failure(). */
int mesh_agree(const struct mesh *mesh, int status);

/* Sums `count` doubles over the data axis, in rank order; every rank gets the same bits. Collective. */
int mesh_sum(const struct mesh *mesh, double *values, int count);

/* Whether any rank raised its flag: 1 or 0, the same on all; −1 where MPI failed (recorded). Collective. */
int mesh_any(const struct mesh *mesh, int flag);

/* Sums a flat gradient buffer over the data axis in rank order: reduce-scatter (each rank adds its piece of
 * all ranks in rank order) and all-gather, block by block of MESH_BLOCK elements. Every rank gets the same
 * bits. Scratch is reserved by mesh_reserve for buffers of up to `count` elements (16 MiB at most in single
 * precision). Collective. */
int mesh_reserve(struct mesh *mesh, long count);
int mesh_sum_gradients(struct mesh *mesh, real *gradient, long count);

/* Bytes from rank 0's file or buffer to all. Collective. */
int mesh_broadcast(const struct mesh *mesh, void *bytes, long count);

#endif
