#include "dist/comm/axis.h"
#include "dist/mpi/mpi_error.h"
#include "kernels/backends/backends.h"

#include <stdlib.h>

int axis_create(const char *name, MPI_Comm world, int color, int index, int size, struct axis *out) {
    *out = axis_planned(name, size, index);
    MPI_TRY(MPI_Comm_split(world, color, index, &out->comm));
    MPI_TRY(MPI_Comm_set_errhandler(out->comm, MPI_ERRORS_RETURN));
    size_t ranks = (size_t)size;
    out->gathered = malloc(ranks * AXIS_DOUBLES * sizeof *out->gathered);
    out->count = calloc(4 * ranks, sizeof *out->count);
    out->call = calloc(5 * ranks, sizeof *out->call);
    if (!out->gathered || !out->count || !out->call) {
        axis_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory: the buffers of a mesh of %d %s ranks cannot be had",
                        size, name);
    }
    out->at = out->count + ranks;
    out->received = out->at + ranks;
    out->received_at = out->received + ranks;
    out->ticket = out->call + 4 * ranks;
    return 0;
}

struct axis axis_alone(const char *name) {
    return axis_planned(name, 1, 0);
}

struct axis axis_planned(const char *name, int size, int index) {
    return (struct axis){
        .name = name, .size = size, .index = index, .comm = MPI_COMM_NULL, .ops = ops_all()[0]};
}

void axis_free(struct axis *axis) {
    if (axis->device_comm) axis->ops->device->comm->close(axis->device_comm);
    if (axis->pieces) axis->ops->device->release(axis->pieces);
    if (axis->comm != MPI_COMM_NULL) MPI_Comm_free(&axis->comm);
    axis_begun_free(axis);
    axis_ring_free(axis);
    free(axis->gathered);
    free(axis->count);
    free(axis->call);
    *axis = (struct axis){.comm = MPI_COMM_NULL};
}
