/* The mesh as a thread beside the one that trains sees it. */
#include "dist/mesh/mesh.h"
#include "dist/mpi/mpi_error.h"

#include <string.h>

static struct axis place_on(const struct axis *axis) {
    struct axis place = axis_alone(axis->name);
    place.index = axis->index, place.size = axis->size;
    return place;
}

bool mesh_threads(void) {
    int provided = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE;
}

static int verify_threads(const struct mesh *mesh, const char *key) {
    if (mesh->size == 1 || mesh_threads()) return 0;
    return gdn_fail(
        GDN_INPUT,
        "%s: true needs an MPI that several threads may call at a time (MPI_THREAD_MULTIPLE), which "
        "this one does not offer; set it to false, or use an MPI built with thread support",
        key);
}

/* Makes the communicator of the host's ranks once for all, so that none is made while a checkpoint is
 * written. */
static int split_hosts(struct mesh *out) {
    int first, index, count;
    TRY(mesh_hosts(out, &first, &index, &count));
    MPI_TRY(MPI_Comm_split(out->world, first, out->rank, &out->node));
    return 0;
}

static int join(struct mesh *out, MPI_Comm world) {
    if (out->size == 1) return 0;
    MPI_TRY(MPI_Comm_dup(world, &out->world));
    MPI_TRY(MPI_Comm_set_errhandler(out->world, MPI_ERRORS_RETURN));
    return split_hosts(out);
}

int mesh_duplicate(const struct mesh *mesh, const char *key, struct mesh *out) {
    *out = mesh_alone();
    TRY(mesh_agree(mesh, verify_threads(mesh, key)));
    out->rank = mesh->rank, out->size = mesh->size;
    out->sizes = mesh->sizes, out->batch = mesh->batch;
    memcpy(out->host, mesh->host, sizeof out->host);
    for (int a = 0; a < axes_count(); a++) out->axis[a] = place_on(&mesh->axis[a]);
    int status = mesh_agree(mesh, join(out, mesh->world));
    out->polling = true;
    if (status) mesh_free(out);
    return status;
}
