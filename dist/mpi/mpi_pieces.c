#include "dist/mpi/mpi_pieces.h"
#include "dist/mpi/mpi_check.h"

long mpi_piece_most = 1L << 28;

long mpi_piece(long count) {
    long most = (count + MPI_PIECES - 1) / MPI_PIECES;
    return most > mpi_piece_most ? most : mpi_piece_most;
}

int mpi_gather_pieces(void *all, const long *at, const long *count, MPI_Datatype type, MPI_Comm comm) {
    int ranks, bytes;
    MPI_TRY(MPI_Comm_size(comm, &ranks));
    MPI_TRY(MPI_Type_size(type, &bytes));
    for (int r = 0; r < ranks; r++)
        for (long from = 0; from < count[r]; from += mpi_piece_most) {
            long n = count[r] - from < mpi_piece_most ? count[r] - from : mpi_piece_most;
            MPI_TRY(MPI_Bcast((char *)all + (at[r] + from) * bytes, (int)n, type, r, comm));
        }
    return 0;
}
