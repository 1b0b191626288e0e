#include "dist/mpi/process.h"

#include "dist/mpi/mpi_error.h"

int mpi_begin(int *rank) {
    int provided = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_FUNNELED)
        return gdn_fail(GDN_INTERNAL, "MPI cannot be started with thread support (MPI_THREAD_FUNNELED)");
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    return 0;
}

bool mpi_begun(void) {
    int begun = 0;
    MPI_Initialized(&begun);
    return begun;
}

void mpi_end(void) {
    MPI_Finalize();
}

void mpi_abort(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
}
