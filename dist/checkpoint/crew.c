#include "dist/checkpoint/crew.h"
#include "dist/mpi/mpi_check.h"
#include "dist/mpi/patience.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 27 }; /* MPI counts in int */

struct crew crew_all(const struct mesh *mesh) {
    return (struct crew){.mesh = mesh, .comm = mesh->world, .rank = mesh->rank, .size = mesh->size};
}

int crew_agree(const struct crew *crew, int status) {
    return mesh_agree(crew->mesh, status);
}

static int reduce(const struct crew *crew, void *values, long count, MPI_Datatype type, MPI_Op operation) {
    if (crew->size == 1) return 0;
    for (long at = 0; at < count; at += PIECE) {
        int piece = count - at < PIECE ? (int)(count - at) : PIECE;
        MPI_TRY(patience_allreduce(crew->mesh->patient, MPI_IN_PLACE, (char *)values + at * 8, piece, type,
                                   operation, crew->comm));
    }
    return 0;
}

int crew_sum(const struct crew *crew, uint64_t *values, long count) {
    return reduce(crew, values, count, MPI_UINT64_T, MPI_SUM);
}

int crew_max(const struct crew *crew, int64_t *values, long count) {
    return reduce(crew, values, count, MPI_INT64_T, MPI_MAX);
}

int crew_broadcast(const struct crew *crew, void *bytes, long count) {
    if (crew->size == 1) return 0;
    for (long at = 0; at < count; at += PIECE) {
        int piece = count - at < PIECE ? (int)(count - at) : PIECE;
        MPI_TRY(patience_broadcast(crew->mesh->patient, (char *)bytes + at, piece, 0, crew->comm));
    }
    return 0;
}

/* The number of bytes of each rank, and where they begin: counts, places [size]. */
static int find_places(const struct crew *crew, long bytes, int *counts, int *places, long *total) {
    int mine = (int)bytes;
    if (crew->size == 1)
        counts[0] = mine;
    else
        MPI_TRY(patience_allgather(crew->mesh->patient, &mine, sizeof mine, counts, crew->comm));
    *total = 0;
    for (int r = 0; r < crew->size; r++) places[r] = (int)*total, *total += counts[r];
    return 0;
}

int crew_gather(const struct crew *crew, const void *mine, long bytes, void **all, long *total, long *first) {
    int *counts = crew_allocate(crew, 2 * (size_t)crew->size * sizeof *counts, "collecting from all ranks");
    *all = NULL;
    if (!counts) return GDN_INTERNAL;
    int *places = counts + crew->size;
    int status = find_places(crew, bytes, counts, places, total);
    if (!status && *total > INT32_MAX)
        status = gdn_fail(GDN_INTERNAL, "the parts of a checkpoint are too many to be listed in one place");
    status = crew_agree(crew, status);
    *first = places[crew->rank];
    if (!status) {
        *all = crew_allocate(crew, crew->rank == 0 ? (size_t)*total + 1 : 1, "collecting from all ranks");
        status = *all ? 0 : GDN_INTERNAL;
    }
    if (!status && crew->size == 1) memcpy(*all, mine, (size_t)bytes);
    if (!status && crew->size > 1) {
        int code = patience_gather(crew->mesh->patient, mine, (int)bytes, *all, counts, places, crew->comm);
        if (code != MPI_SUCCESS) status = mpi_failed(code, "MPI_Gatherv");
    }
    free(counts);
    return status;
}

void *crew_allocate(const struct crew *crew, size_t bytes, const char *what) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    int status = memory ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %s", what);
    if (!crew_agree(crew, status)) return memory;
    free(memory);
    return NULL;
}
