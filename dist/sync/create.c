#include "dist/sync/private.h"

#include "dist/mpi/mpi_error.h"

#include <stdlib.h>
#include <string.h>

static int duplicate(const struct axis *axis, MPI_Comm *out) {
    if (axis->size == 1) return 0;
    MPI_TRY(MPI_Comm_dup(axis->comm, out));
    MPI_TRY(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN));
    return 0;
}

/* The ranks of both legs. */
static int divide(const struct axis *copies, int group, struct async_ranks leg[LEGS]) {
    for (int l = 0; l < LEGS; l++) {
        const struct leg_copies of = shards_leg(copies->size, group, copies->index, (enum leg)l);
        leg[l] = (struct async_ranks){of.size, of.index, of.first, of.stride, MPI_COMM_NULL};
        if (of.size == 1) continue;
        MPI_TRY(MPI_Comm_split(copies->comm, of.first, of.index, &leg[l].comm));
        MPI_TRY(MPI_Comm_set_errhandler(leg[l].comm, MPI_ERRORS_RETURN));
    }
    return 0;
}

/* Reserves elements on the device. */
static real *reserve_elements(const struct sync *sync, long count) {
    return sync->mesh->axis[AXIS_COPIES].ops->device->reserve(((size_t)count + 1) * sizeof(real));
}

static int reserve(struct sync *sync) {
    struct mesh *mesh = sync->mesh;
    size_t buckets = (size_t)sync->shards->buckets + 1;
    long partial = mesh->axis[AXIS_TENSOR].size > 1 ? sync_longest_partial(sync->table) : 0;
    sync->largest = mesh->axis[AXIS_COPIES].size > 1 ? sync_longest_bucket(sync->shards) : 0;
    sync->bucket = calloc(buckets, sizeof *sync->bucket);
    sync->swap = calloc(2 * (size_t)sync_most_owners(sync->table) + 1, sizeof *sync->swap);
    sync->scratch = reserve_elements(sync, SYNC_IN_FLIGHT * sync->largest);
    sync->packed = reserve_elements(sync, partial);
    sync->versions = reserve_elements(sync, sync_longest_versions(sync->table));
    if (!sync->bucket || !sync->swap || !sync->scratch || !sync->packed || !sync->versions)
        return gdn_fail(GDN_INTERNAL,
                        "out of memory: buffers for sums of gradient buckets of %ld elements cannot be had; "
                        "a smaller mesh.bucket needs less",
                        sync->largest);
    return axis_reserve(&mesh->axis[AXIS_TENSOR], partial);
}

int sync_create(struct mesh *mesh, const struct table *table, const struct shards *shards, struct sync **out,
                int64_t *bytes) {
    /* First what needs the other ranks, so that none waits for one that has no memory. */
    MPI_Comm pipeline = MPI_COMM_NULL;
    struct async_ranks leg[LEGS];
    TRY(divide(&mesh->axis[AXIS_COPIES], shards->group, leg));
    TRY(duplicate(&mesh->axis[AXIS_PIPELINE], &pipeline));
    struct sync *sync = *out = calloc(1, sizeof *sync);
    if (!sync) return gdn_fail(GDN_INTERNAL, "out of memory for the gradient sums");
    *sync =
        (struct sync){.mesh = mesh, .table = table, .shards = shards, .pipeline = pipeline, .first = -1};
    memcpy(sync->leg, leg, sizeof leg);
    sync_find_layers(table, &sync->lowest, &sync->highest);
    sync->from = sync->highest + 1;
    int status = reserve(sync);
    if (bytes)
        *bytes =
            sync_formula_scratch(table, shards, mesh->axis[AXIS_COPIES].size, mesh->axis[AXIS_TENSOR].size);
    if (!status) return 0;
    sync_free(sync);
    *out = NULL;
    return status;
}

void sync_free(struct sync *sync) {
    if (!sync) return;
    for (int l = 0; l < LEGS; l++)
        if (sync->leg[l].comm != MPI_COMM_NULL) MPI_Comm_free(&sync->leg[l].comm);
    if (sync->pipeline != MPI_COMM_NULL) MPI_Comm_free(&sync->pipeline);
    const struct device *device = sync->mesh->axis[AXIS_COPIES].ops->device;
    free(sync->bucket);
    free(sync->swap);
    if (sync->scratch) device->release(sync->scratch);
    if (sync->packed) device->release(sync->packed);
    if (sync->versions) device->release(sync->versions);
    free(sync);
}
