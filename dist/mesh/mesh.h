/* The mesh: MPI's ranks laid out on axes (dist/layout/axes.h), the communicators that go with them, and the
 * sums that travel over them. Sums add in rank order, so a result does not depend on the call that made it.
 *
 * An MPI call that fails returns GDN_INTERNAL with MPI's words; the job cannot go on after that, since the
 * other ranks may be waiting in the same call. */
#ifndef GDN_MESH_H
#define GDN_MESH_H

#include <mpi.h>

#include "dist/comm/axis.h"
#include "dist/layout/axes.h"
#include "kernels/base/real.h"
#include "kernels/base/status.h"

/* Ranks lie on the axes in the order axis_order. */
struct mesh {
    int rank, size;          /* MPI's, of `world` */
    struct axis_sizes sizes; /* ranks of each axis of the configuration */
    struct batch_part batch; /* which part of each batch this rank has */
    struct axis
        axis[AXES]; /* what is exchanged over; those over which gradients are summed are one: AXIS_COPIES, in
                       which that of pieces of sequences lies, for passes alone */
    MPI_Comm world; /* a duplicate of MPI_COMM_WORLD */
    char host[64];
    const char *transport;   /* "mpi", "staged" or "nccl": how buffers travel; mesh_use */
    struct staging *staging; /* its axes' (dist/comm/staging.h), or NULL */
    bool polling;            /* mesh_duplicate */
    MPI_Comm node;           /* the ranks of this host, where made once for all; MPI_COMM_NULL: not made */
};

/* How the buffers of devices travel between ranks: through host memory and MPI, or over device communicators
 * between the devices (NCCL); MESH_AUTO: over device communicators where all ranks have them and their own
 * GPU. */
enum mesh_transport { MESH_AUTO, MESH_STAGED, MESH_NCCL };

/* Lays all ranks out; an axis that may have 0 (axis_rows, `rest`) takes all ranks left over. Collective over
 * all ranks, after MPI_Init. GDN_INPUT, the same on every rank, where the product of the axes is not the
 * number of ranks (the message names both and mesh.data etc.). After a failure there is nothing to free. */
int mesh_create(const int size[AXES], struct mesh *out);
/* Checks the axes against the number of ranks, as mesh_create does, and resolves a size 0. Not collective. */
int mesh_validate(int size[AXES], int ranks);
/* A mesh of this process alone, which needs no MPI_Init: for commands that run as one process. Nothing to
 * free. */
struct mesh mesh_alone(void);

/* From now on the axes' buffers lie on the device of `ops`; before, on the host. Opens the ways between the
 * ranks' devices. `seconds`: after which an exchange over device communicators that has not ended is given
 * up, and the job with it (0: 600). Called at most once for a mesh, before anything is reserved or created
 * that uses its axes. Collective over all ranks. GDN_INPUT, the same on all ranks, for MESH_NCCL where some
 * rank has no device communicators or no GPU of its own; GDN_INTERNAL. */
int mesh_use(struct mesh *mesh, const struct ops *ops, enum mesh_transport choice, double seconds);
/* What mesh_use refuses of the host, `name`. GDN_INPUT for MESH_NCCL. Not collective. */
int mesh_validate_host(const char *name, enum mesh_transport choice);
/* The same ranks at the same places for a thread that works beside the caller's, with communicators of its
 * own: for mesh_agree, mesh_any, mesh_gather, mesh_broadcast and checkpoints, which then wait without keeping
 * a core busy; its axes cannot be used. Collective over `mesh`; mesh_free. GDN_INPUT, the same on all ranks,
 * where there are several and MPI is not for several threads: names `key`, the setting that asks for it. */
int mesh_duplicate(const struct mesh *mesh, const char *key, struct mesh *out);
/* Whether several threads may call MPI at a time. Not collective. */
bool mesh_threads(void);
/* The ranks of this host are those that give the same host name: the lowest of them; hosts in the order of
 * their first ranks: which one it is, and how many there are. For meshes of several ranks; waits as the mesh
 * does. Collective over `mesh`. GDN_INTERNAL. */
int mesh_hosts(const struct mesh *mesh, int *first, int *index, int *count);
/* After all that uses the axes. */
void mesh_free(struct mesh *mesh);

/* Agrees on an outcome: collective over all ranks, each giving its own status. Returns the status of the
 * lowest failing rank on all ranks (0 where none failed) and makes that rank's recorded words, prefixed with
 * "rank R on HOST: " where there is more than one rank, every rank's gdn_failure(). */
int mesh_agree(const struct mesh *mesh, int status);

/* The same where ranks may come late, one having worked for long: until the last has come, the time-outs of
 * those that wait begin again (dist/mpi/activity.h). */
int mesh_agree_late(const struct mesh *mesh, int status);

/* Sums `count` doubles over all ranks: over one axis after the other (axis_sum_order), each in rank order;
 * every rank gets the same bits. Collective. GDN_INTERNAL. */
int mesh_sum(struct mesh *mesh, double *values, int count);

/* Returns when all ranks have called it; until then calls `tick` ten times a second and leaves the core to
 * others. Collective. GDN_INTERNAL. */
int mesh_wait(const struct mesh *mesh, void (*tick)(void *), void *input);

/* Whether any rank raised its flag: 1 or 0, the same on all; −1 where MPI failed (recorded). Collective. */
int mesh_any(const struct mesh *mesh, int flag);

/* `bytes` of every rank, the same number on each, become all [size, bytes] in rank order. Collective.
 * GDN_INTERNAL. */
int mesh_gather(const struct mesh *mesh, const void *mine, long bytes, void *all);

/* Replaces `count` values by an exact reduction over all ranks (a maximum, a sum of integers). Collective.
 * GDN_INTERNAL. */
int mesh_reduce(const struct mesh *mesh, void *values, int count, MPI_Datatype type, MPI_Op operation);

/* The lowest rank that has the greatest value. Collective. GDN_INTERNAL. */
int mesh_find_max(const struct mesh *mesh, long value, int *rank);

/* Bytes from rank 0's file or buffer to all. Collective. */
int mesh_broadcast(const struct mesh *mesh, void *bytes, long count);
/* The same from another rank. */
int mesh_broadcast_from(const struct mesh *mesh, int root, void *bytes, long count);

/* A few bytes from one rank to another, which calls the other one. GDN_INTERNAL. */
int mesh_send(const struct mesh *mesh, int rank, const void *bytes, int count);
int mesh_receive(const struct mesh *mesh, int rank, void *bytes, int count);

#endif
