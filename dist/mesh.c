/* Layout, agreement and broadcast; the sums are in mesh_sum.c. */
#include "dist/mesh.h"
#include "dist/mpi_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mpi_failed(int code, const char *call) {
    char words[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    MPI_Error_string(code, words, &length);
    return gdn_fail(GDN_INTERNAL, "%s failed: %s", call, words);
}

/* Checks the axes against each other and the number of ranks; resolves *data. */
static int check_axes(int *data, int tensor, int pipeline, int size) {
    if (*data < 0)
        return gdn_fail(GDN_INPUT,
                        "mesh.data: %d is not a number of ranks; use 1 or more, or 0 for all ranks left over",
                        *data);
    if (tensor != 1)
        return gdn_fail(
            GDN_INPUT,
            "mesh.tensor: %d cannot be had: this version has data parallelism only; use mesh.tensor: 1",
            tensor);
    if (pipeline != 1)
        return gdn_fail(
            GDN_INPUT,
            "mesh.pipeline: %d cannot be had: this version has data parallelism only; use mesh.pipeline: 1",
            pipeline);
    if (*data == 0) *data = size;
    if (*data != size)
        return gdn_fail(GDN_INPUT,
                        "mesh.data: %d (with mesh.tensor: 1, mesh.pipeline: 1) needs %d ranks, but the "
                        "program runs on %d; "
                        "start it with mpirun -n %d, or set mesh.data to %d or 0",
                        *data, *data, size, *data, size);
    return 0;
}

int mesh_create(int data, int tensor, int pipeline, struct mesh *out) {
    *out = (struct mesh){.world = MPI_COMM_NULL, .data_axis = MPI_COMM_NULL};
    MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &out->rank));
    MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &out->size));
    TRY(check_axes(&data, tensor, pipeline, out->size));
    out->data = data, out->tensor = tensor, out->pipeline = pipeline;
    out->data_index = out->rank;
    if (gethostname(out->host, sizeof out->host)) strcpy(out->host, "unknown host");
    out->host[sizeof out->host - 1] = 0;

    MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &out->world));
    MPI_TRY(MPI_Comm_set_errhandler(out->world, MPI_ERRORS_RETURN));
    MPI_TRY(MPI_Comm_dup(out->world, &out->data_axis)); /* all ranks: the other axes have length 1 */

    size_t ranks = (size_t)data;
    out->gathered = malloc(ranks * MESH_SUM_PIECE * sizeof *out->gathered);
    out->part_count = calloc(ranks, sizeof(int));
    out->part_at = calloc(ranks, sizeof(int));
    out->received = calloc(ranks, sizeof(int));
    out->received_at = calloc(ranks, sizeof(int));
    int status = 0;
    if (!out->gathered || !out->part_count || !out->part_at || !out->received || !out->received_at)
        status =
            gdn_fail(GDN_INTERNAL, "out of memory: the buffers of a mesh of %d ranks cannot be had", data);
    status = mesh_agree(out, status);
    if (status) mesh_free(out);
    return status;
}

struct mesh mesh_alone(void) {
    return (struct mesh){
        .size = 1, .data = 1, .tensor = 1, .pipeline = 1, .world = MPI_COMM_NULL, .data_axis = MPI_COMM_NULL};
}

void mesh_free(struct mesh *mesh) {
    if (mesh->data_axis != MPI_COMM_NULL) MPI_Comm_free(&mesh->data_axis);
    if (mesh->world != MPI_COMM_NULL) MPI_Comm_free(&mesh->world);
    free(mesh->gathered);
    free(mesh->pieces);
    free(mesh->part_count);
    free(mesh->part_at);
    free(mesh->received);
    free(mesh->received_at);
    *mesh = (struct mesh){.world = MPI_COMM_NULL, .data_axis = MPI_COMM_NULL};
}

int mesh_agree(const struct mesh *mesh, int status) {
    if (mesh->size == 1) return status;
    int mine = status ? mesh->rank : mesh->size, lowest = mine;
    MPI_TRY(MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, mesh->world));
    if (lowest == mesh->size) return 0;

    struct {
        int status;
        char words[4096];
    } outcome = {.status = status};
    if (mesh->rank == lowest) {
        int at = snprintf(outcome.words, sizeof outcome.words, "rank %d on %s: ", mesh->rank, mesh->host);
        snprintf(outcome.words + at, sizeof outcome.words - (size_t)at, "%s",
                 *gdn_failure() ? gdn_failure() : "failed without saying why");
    }
    MPI_TRY(MPI_Bcast(&outcome, sizeof outcome, MPI_BYTE, lowest, mesh->world));
    gdn_failure_clear();
    return gdn_fail(outcome.status, "%s", outcome.words);
}

int mesh_any(const struct mesh *mesh, int flag) {
    int mine = flag != 0, any = 0;
    if (mesh->size == 1) return mine;
    int code = MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, mesh->world);
    if (code != MPI_SUCCESS) {
        mpi_failed(code, "MPI_Allreduce of a flag");
        return -1;
    }
    return any;
}

int mesh_broadcast(const struct mesh *mesh, void *bytes, long count) {
    enum { PIECE = 1 << 28 }; /* MPI counts in int */
    if (mesh->size == 1) return 0;
    for (long at = 0; at < count; at += PIECE) {
        int piece = count - at < PIECE ? (int)(count - at) : PIECE;
        MPI_TRY(MPI_Bcast((char *)bytes + at, piece, MPI_BYTE, 0, mesh->world));
    }
    return 0;
}
