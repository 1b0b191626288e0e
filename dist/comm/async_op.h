/* An asynchronous operation: one exchange between an axis's ranks that has been started and progresses
 * while other work is done, in one of three ways (dist/mesh/mesh.h, mesh_use):
 *   mpi     the buffers are ordinary memory, which MPI takes
 *   staged  buffers are copied to host memory and given to MPI once they are there;
 *           what was received is copied to the device
 *   nccl    an exchange over the axis's device communicator, in the order of the device's queues
 * Staged operations are given to MPI in the order in which they were started, so that all ranks make the
 * same collective calls in the same order. A wait for one operation makes all of them progress; before any
 * other MPI call that waits for other ranks, all must have been given to MPI (async_ops_start), or ranks
 * could wait for each other in a ring. Private to dist/. Functions return a status. */
#ifndef GDN_ASYNC_OP_H
#define GDN_ASYNC_OP_H

#include "dist/comm/axis.h"
#include "dist/mpi/mpi_pieces.h"
#include "dist/comm/staging.h"

enum async_op_kind { ASYNC_EXCHANGE, ASYNC_GATHER, ASYNC_SEND, ASYNC_RECEIVE };

enum async_op_state {
    ASYNC_DONE,
    ASYNC_FETCHED,   /* being fetched */
    ASYNC_UNDER_WAY, /* MPI has it */
    ASYNC_THERE,     /* MPI is done; being delivered */
    ASYNC_ON_DEVICE,
};

/* Ranks of an axis that exchange among themselves: first, first + stride, … `comm` is theirs, in that order. */
struct async_ranks {
    int size, index; /* how many, and this one's number */
    int first, stride;
    MPI_Comm comm;
};

/* All but x, count, peer and tag are private to async_op.c; `state` begins as zeros. */
struct async_op {
    enum async_op_kind kind;
    enum async_op_state state;
    struct axis *axis;
    struct async_ranks ranks; /* of messages `comm` alone */
    struct staging *staging; /* NULL: MPI takes the buffers themselves */
    void *x, *pieces;        /* the caller's */
    long count;              /* elements: of a rank's part, or of the message */
    enum wire wire;          /* their type; gradients and weights are as they are stored */
    int peer, tag;
    void *out, *in; /* what MPI reads and writes */
    int ticket;
    MPI_Request request[MPI_PIECES];
    int requests;
    struct async_op *next; /* behind it among those that are being fetched */
};

/* Of some ranks of the axis, or all: every rank's part of x [size, part] to that rank, and all versions of the own
 * part into pieces [size, part]. */
int async_op_exchange(struct async_op *op, struct axis *axis, const struct async_ranks *ranks, real *x,
                      real *pieces, long part);
/* Every rank's own part of x [size, part] to all, in place. */
int async_op_gather(struct async_op *op, struct axis *axis, const struct async_ranks *ranks, real *x,
                    long part);
/* A message over MPI of `count` elements of that type. `on_host`: x is ordinary memory. */
int async_op_send(struct async_op *op, struct axis *axis, MPI_Comm comm, const void *x, long count,
                  enum wire wire, int peer, int tag, bool on_host);
int async_op_receive(struct async_op *op, struct axis *axis, MPI_Comm comm, void *x, long count,
                     enum wire wire, int peer, int tag, bool on_host);

/* Lets it move on, without waiting for other ranks. */
int async_op_move(struct async_op *op);
/* Whether MPI has done its part. */
bool async_op_has_come(const struct async_op *op);
/* Waits until MPI has done its part; x may not be looked at yet. Nothing on device communicators. */
int async_op_await(struct async_op *op);
/* Ends it: operations queued from now on find what came in and may overwrite what went out. */
int async_op_end(struct async_op *op);

/* Gives to MPI what has been fetched, in order; `all`: waits for the device where it has not arrived yet.
 * NULL: nothing. */
int async_ops_start(struct staging *staging, bool all);

#endif
