/* To be preloaded: MPI_Init_thread or MPI_Finalize, whichever GDN_HANG_IN names, never returns on rank
 * GDN_HANG_RANK. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(const char *call) {
    const char *in = getenv("GDN_HANG_IN"), *on = getenv("GDN_HANG_RANK"),
               *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!in || !on || strcmp(in, call)) return;
    while (!strcmp(on, rank ? rank : "0")) pause();
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    hang("MPI_Init");
    return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Finalize(void) {
    hang("MPI_Finalize");
    return PMPI_Finalize();
}
