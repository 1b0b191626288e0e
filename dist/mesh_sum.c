/* Sums over the data axis, in rank order: ((g₀ + g₁) + g₂) + … for every element. MPI_Allreduce does not
 * promise an order, and Open MPI's changes with the count; adding here makes a sum a function of its terms
 * and their ranks alone. */
#include "dist/mesh.h"
#include "dist/mpi_check.h"

#include <stdlib.h>

int mesh_sum(const struct mesh *mesh, double *values, int count) {
    if (mesh->data == 1) return 0;
    for (int at = 0; at < count; at += MESH_SUM_PIECE) {
        int n = count - at < MESH_SUM_PIECE ? count - at : MESH_SUM_PIECE;
        MPI_TRY(MPI_Allgather(values + at, n, MPI_DOUBLE, mesh->gathered, n, MPI_DOUBLE, mesh->data_axis));
        for (int i = 0; i < n; i++) {
            double sum = mesh->gathered[i];
            for (int rank = 1; rank < mesh->data; rank++) sum += mesh->gathered[rank * n + i];
            values[at + i] = sum;
        }
    }
    return 0;
}

int mesh_reserve(struct mesh *mesh, long count) {
    if (mesh->data == 1) return 0;
    long block = count < MESH_BLOCK ? count : MESH_BLOCK;
    /* Every rank's version of one part, and the greatest part is block / data rounded up. */
    mesh->pieces_count = (block + mesh->data - 1) / mesh->data * mesh->data;
    size_t bytes = (size_t)mesh->pieces_count * sizeof(real);
    free(mesh->pieces);
    mesh->pieces = malloc(bytes ? bytes : 1);
    int status = 0;
    if (!mesh->pieces) {
        mesh->pieces_count = 0;
        status = gdn_fail(GDN_INTERNAL, "out of memory: %.1f MiB for summing gradients cannot be had",
                          (double)bytes / 1048576);
    }
    return mesh_agree(mesh, status);
}

/* Sums one block: part r of it goes to rank r from everyone, is added there, and goes back to everyone. */
static int sum_block(struct mesh *mesh, real *block, int count) {
    MPI_Datatype type = sizeof(real) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE;
    int ranks = mesh->data, me = mesh->data_index;
    for (int r = 0; r < ranks; r++) {
        mesh->part_at[r] = (int)((long)count * r / ranks);
        mesh->part_count[r] = (int)((long)count * (r + 1) / ranks) - mesh->part_at[r];
    }
    int mine = mesh->part_count[me];
    for (int r = 0; r < ranks; r++) mesh->received[r] = mine, mesh->received_at[r] = r * mine;
    MPI_TRY(MPI_Alltoallv(block, mesh->part_count, mesh->part_at, type, mesh->pieces, mesh->received,
                          mesh->received_at, type, mesh->data_axis));

    real *sum = block + mesh->part_at[me]; /* [mine] */
    const real *pieces = mesh->pieces;     /* [ranks, mine] */
#pragma omp parallel for simd schedule(static) if (mine > 16384)
    for (int i = 0; i < mine; i++) {
        real s = pieces[i];
        for (int r = 1; r < ranks; r++) s += pieces[(long)r * mine + i];
        sum[i] = s;
    }
    MPI_TRY(
        MPI_Allgatherv(MPI_IN_PLACE, 0, type, block, mesh->part_count, mesh->part_at, type, mesh->data_axis));
    return 0;
}

int mesh_sum_gradients(struct mesh *mesh, real *gradient, long count) {
    if (mesh->data == 1) return 0;
    long block = count < MESH_BLOCK ? count : MESH_BLOCK;
    if ((block + mesh->data - 1) / mesh->data * mesh->data > mesh->pieces_count)
        return gdn_fail(GDN_INTERNAL,
                        "gradients of %ld elements are summed, but mesh_reserve was asked for fewer", count);
    for (long at = 0; at < count; at += block) {
        int n = count - at < block ? (int)(count - at) : (int)block;
        TRY(sum_block(mesh, gradient + at, n));
    }
    return 0;
}
