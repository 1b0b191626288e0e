/* MPI's beginning and end in this process. */
#ifndef GDN_MPI_PROCESS_H
#define GDN_MPI_PROCESS_H

#include <stdbool.h>

/* Starts MPI, for several threads where it can, and gives this process's rank. Collective over all processes
 * that were started together. GDN_INTERNAL, also where it allows no threads at all. */
int mpi_begin(int *rank);

/* Whether MPI was started. */
bool mpi_begun(void);

/* Ends MPI, after all that uses it. Collective. */
void mpi_end(void);

/* Ends all processes with this exit status. Not collective. */
void mpi_abort(int status);

#endif
