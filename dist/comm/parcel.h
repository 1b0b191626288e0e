/* A parcel: one exchange between an axis's ranks that has been started and goes on while other work is done,
 * whichever way it takes (dist/mesh/mesh.h, mesh_use):
 *
 *     mpi      the buffers are ordinary memory: MPI takes them as they are
 *     staged   what goes out is fetched to host memory, given to MPI once it is there, and what came in is
 *              delivered to the device once MPI has it
 *     nccl     an exchange over the axis's wire, in the order of the device's queues
 *
 * Fetched parcels go to MPI in the order in which they were started, so that all ranks make the same
 * collective calls in the same order. Whoever waits here lets all of them move on; and before a call of MPI's
 * that waits for other ranks, all must have been given to MPI (parcels_start), or ranks might wait for each
 * other in a ring.
 *
 * Private to dist/. Functions return a status. */
#ifndef GDN_PARCEL_H
#define GDN_PARCEL_H

#include "dist/comm/axis.h"
#include "dist/mpi/mpi_pieces.h"
#include "dist/comm/staging.h"

enum parcel_kind { PARCEL_EXCHANGE, PARCEL_GATHER, PARCEL_SEND, PARCEL_RECEIVE };

enum parcel_state {
    PARCEL_DONE,
    PARCEL_FETCHED,   /* being fetched */
    PARCEL_UNDER_WAY, /* MPI has it */
    PARCEL_THERE,     /* MPI is done; being delivered */
    PARCEL_WIRED,
};

/* All but x, count, peer and tag is private to parcel.c; `state` begins as zeros. */
struct parcel {
    enum parcel_kind kind;
    enum parcel_state state;
    struct axis *axis;
    MPI_Comm comm;
    struct staging *staging; /* NULL: MPI takes the buffers themselves */
    real *x, *pieces;        /* the caller's */
    long count;              /* elements: of a rank's part, or of the message */
    int peer, tag;
    real *out, *in; /* what MPI reads and writes */
    int ticket;
    MPI_Request request[MPI_PIECES];
    int requests;
    struct parcel *next; /* behind it among those that are being fetched */
};

/* Every rank's part of x [size, part] to that rank, and all versions of the own part into pieces [size,
 * part]. */
int parcel_exchange(struct parcel *parcel, struct axis *axis, MPI_Comm comm, real *x, real *pieces,
                    long part);
/* Every rank's own part of x [size, part] to all, in place. */
int parcel_gather(struct parcel *parcel, struct axis *axis, MPI_Comm comm, real *x, long part);
/* A message over MPI. `on_host`: x is ordinary memory. */
int parcel_send(struct parcel *parcel, struct axis *axis, MPI_Comm comm, const real *x, long count, int peer,
                int tag, bool on_host);
int parcel_receive(struct parcel *parcel, struct axis *axis, MPI_Comm comm, real *x, long count, int peer,
                   int tag, bool on_host);

/* Lets a parcel move on, without waiting for other ranks. */
int parcel_move(struct parcel *parcel);
/* Waits until MPI has done its part; x may not be looked at yet. Nothing on wires. */
int parcel_await(struct parcel *parcel);
/* Ends it: operations queued from now on find what came in and may overwrite what went out. */
int parcel_end(struct parcel *parcel);

/* Gives to MPI what has been fetched, in order; `all`: waits for the device where it has not arrived yet.
 * NULL: nothing. */
int parcels_start(struct staging *staging, bool all);

#endif
