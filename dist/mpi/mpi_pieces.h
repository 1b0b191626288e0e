/* How much goes in one call of MPI: its counts and displacements are ints, and what carries a message may
 * count bytes in one. Longer exchanges go in pieces, which both sides cut alike. Private to dist/. */
#ifndef GDN_MPI_PIECES_H
#define GDN_MPI_PIECES_H

#include <mpi.h>

enum { MPI_PIECES = 64 /* of a message, all under way together */ };

/* Elements, of whatever type: a GiB of floats. The same on all ranks; only tests set it. */
extern long mpi_piece_max;

/* The length of a message's pieces, of which only the last may be shorter: at most mpi_piece_max, unless
 * there would be more than MPI_PIECES. */
long mpi_piece(long count);

/* Every rank's part, count[rank] elements of `type` at `all` + at[rank], to all ranks, in place. In pieces,
 * so whatever its length; a collective call of MPI's is faster for what it can count. */
int mpi_gather_pieces(void *all, const long *at, const long *count, MPI_Datatype type, MPI_Comm comm);

#endif
