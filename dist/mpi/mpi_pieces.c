#include "dist/mpi/mpi_pieces.h"
#include "dist/mpi/mpi_error.h"

long mpi_piece_max = 1L << 28;

long mpi_piece(long count) {
    long max = (count + MPI_PIECES - 1) / MPI_PIECES;
    return max > mpi_piece_max ? max : mpi_piece_max;
}

int mpi_gather_pieces(void *all, const long *at, const long *count, MPI_Datatype type, MPI_Comm comm) {
    int ranks, bytes;
    MPI_TRY(MPI_Comm_size(comm, &ranks));
    MPI_TRY(MPI_Type_size(type, &bytes));
    for (int r = 0; r < ranks; r++)
        for (long from = 0; from < count[r]; from += mpi_piece_max) {
            long n = count[r] - from < mpi_piece_max ? count[r] - from : mpi_piece_max;
            MPI_TRY(MPI_Bcast((char *)all + (at[r] + from) * bytes, (int)n, type, r, comm));
        }
    return 0;
}
