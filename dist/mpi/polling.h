/* MPI's collectives as a thread beside the one that computes should wait in them: MPI's own waits keep a core
 * busy, which would be taken from training, so these look whether a call has ended, and sleep between looks.
 * With `polling` false they are MPI's. They return MPI's codes. Private to dist/. */
#ifndef GDN_POLLING_H
#define GDN_POLLING_H

#include <mpi.h>
#include <stdbool.h>

/* `send` may be MPI_IN_PLACE. */
int polling_allreduce(bool polling, const void *send, void *receive, int count, MPI_Datatype type,
                      MPI_Op operation, MPI_Comm comm);
int polling_broadcast(bool polling, void *bytes, int count, int root, MPI_Comm comm);
/* The same `count` of bytes from each. */
int polling_allgather(bool polling, const void *send, int count, void *receive, MPI_Comm comm);
/* On rank 0; counts and places in bytes. */
int polling_gather(bool polling, const void *send, int count, void *receive, const int *counts,
                   const int *places, MPI_Comm comm);

#endif
