#include "dist/checkpoint/file_group.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/polling.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 27 }; /* MPI counts in int */

struct file_group file_group_all(const struct mesh *mesh) {
    return (struct file_group){.mesh = mesh, .comm = mesh->world, .rank = mesh->rank, .size = mesh->size};
}

int file_group_agree(const struct file_group *group, int status) {
    return mesh_agree(group->mesh, status);
}

static int reduce(const struct file_group *group, void *values, long count, MPI_Datatype type,
                  MPI_Op operation) {
    if (group->size == 1) return 0;
    for (long at = 0; at < count; at += PIECE) {
        int piece = count - at < PIECE ? (int)(count - at) : PIECE;
        MPI_TRY(polling_allreduce(group->mesh->polling, MPI_IN_PLACE, (char *)values + at * 8, piece, type,
                                  operation, group->comm));
    }
    return 0;
}

int file_group_sum(const struct file_group *group, uint64_t *values, long count) {
    return reduce(group, values, count, MPI_UINT64_T, MPI_SUM);
}

int file_group_max(const struct file_group *group, int64_t *values, long count) {
    return reduce(group, values, count, MPI_INT64_T, MPI_MAX);
}

int file_group_broadcast(const struct file_group *group, void *bytes, long count) {
    if (group->size == 1) return 0;
    for (long at = 0; at < count; at += PIECE) {
        int piece = count - at < PIECE ? (int)(count - at) : PIECE;
        MPI_TRY(polling_broadcast(group->mesh->polling, (char *)bytes + at, piece, 0, group->comm));
    }
    return 0;
}

/* The number of bytes of each rank, and where they begin: counts, places [size]. */
static int find_places(const struct file_group *group, long bytes, int *counts, int *places, long *total) {
    int mine = (int)bytes;
    if (group->size == 1)
        counts[0] = mine;
    else
        MPI_TRY(polling_allgather(group->mesh->polling, &mine, sizeof mine, counts, group->comm));
    *total = 0;
    for (int r = 0; r < group->size; r++) places[r] = (int)*total, *total += counts[r];
    return 0;
}

int file_group_gather(const struct file_group *group, const void *mine, long bytes, void **all, long *total,
                      long *first) {
    int *counts =
        file_group_allocate(group, 2 * (size_t)group->size * sizeof *counts, "collecting from all ranks");
    *all = NULL;
    if (!counts) return GDN_INTERNAL;
    int *places = counts + group->size;
    int status = find_places(group, bytes, counts, places, total);
    if (!status && *total > INT32_MAX)
        status = gdn_fail(GDN_INTERNAL, "the parts of a checkpoint are too many to be listed in one place");
    status = file_group_agree(group, status);
    *first = places[group->rank];
    if (!status) {
        *all = file_group_allocate(group, group->rank == 0 ? (size_t)*total + 1 : 1,
                                   "collecting from all ranks");
        status = *all ? 0 : GDN_INTERNAL;
    }
    if (!status && group->size == 1) memcpy(*all, mine, (size_t)bytes);
    if (!status && group->size > 1) {
        int code = polling_gather(group->mesh->polling, mine, (int)bytes, *all, counts, places, group->comm);
        if (code != MPI_SUCCESS) status = mpi_failed(code, "MPI_Gatherv");
    }
    free(counts);
    return status;
}

void *file_group_allocate(const struct file_group *group, size_t bytes, const char *what) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    int status = memory ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for %s", what);
    if (!file_group_agree(group, status)) return memory;
    free(memory);
    return NULL;
}
