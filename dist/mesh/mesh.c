/* Layout, agreement and broadcast; sums over an axis are in dist/comm/axis_sum.c. */
#include "dist/mesh/mesh.h"
#include "dist/comm/axis_move.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/polling.h"
#include "dist/comm/staging.h"
#include "dist/mpi/activity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Sizes from `lowest` up; `lowest` of an axis that may take the rest is 0. */
static int validate_sizes(const int size[AXES]) {
    for (int a = 0; a < axes_count(); a++) {
        const struct axis_row *row = &axis_rows[a];
        if (size[a] < !row->rest)
            return gdn_fail(GDN_INPUT, "%s: %d is not a number of ranks; use 1 or more%s", row->key, size[a],
                            row->rest ? ", or 0 for all ranks left over" : "");
    }
    return 0;
}

int mesh_validate(int size[AXES], int ranks) {
    char others[AXES_TEXT];
    int rest = axes_rest();
    long each = axes_each(size);
    TRY(validate_sizes(size));
    if (size[rest] == 0 && ranks % each == 0) size[rest] = (int)(ranks / each);
    if (size[rest] * each == ranks) return 0;
    if (size[rest] == 0)
        return gdn_fail(
            GDN_INPUT,
            "%s need a multiple of %ld ranks, but the program runs on %d; start it with mpirun -n %ld, or "
            "change the mesh",
            axes_others(size, others), each, ranks, (ranks + each - 1) / each * each);
    return gdn_fail(GDN_INPUT,
                    "%s: %d with %s needs %ld ranks, but the program runs on %d; start it with mpirun -n "
                    "%ld, or change the mesh",
                    axis_rows[rest].key, size[rest], axes_others(size, others), size[rest] * each, ranks,
                    size[rest] * each);
}

/* The rank that is first on this rank's line of an axis, which is its color. */
static int line_of(const int size[AXES], long rank, enum mesh_axis axis) {
    int first[AXES];
    if (axis_rows[axis].pieces) {
        axes_place(size, rank, first);
        first[axis] = 0;
        return (int)axes_rank(size, first);
    }
    axes_place_joined(size, rank, first);
    first[axis] = 0;
    return (int)axes_rank_joined(size, first);
}

/* All axes, whatever becomes of one, since the other ranks make them too. */
static int create_axes(const int size[AXES], struct mesh *m) {
    const struct axis_sizes joined = axes_joined(size);
    int index[AXES], own[AXES], status = 0;
    axes_place_joined(size, m->rank, index);
    axes_place(size, m->rank, own);
    for (int i = 0; i < axes_count(); i++) {
        enum mesh_axis a = axis_order[i];
        const bool pieces = axis_rows[a].pieces;
        if (axis_rows[a].gradients && a != AXIS_COPIES && !pieces) continue;
        int next = axis_create(axis_rows[a].name, m->world, line_of(size, m->rank, a),
                               pieces ? own[a] : index[a], pieces ? size[a] : joined.size[a], &m->axis[a]);
        if (!status) status = next;
    }
    return status;
}

int mesh_create(const int wanted[AXES], struct mesh *out) {
    int size[AXES];
    memcpy(size, wanted, sizeof size);
    *out = mesh_alone();
    MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &out->rank));
    MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &out->size));
    TRY(mesh_validate(size, out->size));
    memcpy(out->sizes.size, size, sizeof size);
    out->batch = axes_batch(size, out->rank);
    if (gethostname(out->host, sizeof out->host)) strcpy(out->host, "unknown host");
    out->host[sizeof out->host - 1] = 0;

    activity_enter("mesh", "laying out", -1, -1);
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &out->world);
    activity_leave();
    MPI_TRY(code);
    MPI_TRY(MPI_Comm_set_errhandler(out->world, MPI_ERRORS_RETURN));
    activity_enter("mesh", "laying out", -1, -1);
    int status = create_axes(size, out);
    activity_leave();
    status = mesh_agree(out, status);
    if (status) mesh_free(out);
    return status;
}

struct mesh mesh_alone(void) {
    struct mesh mesh = {
        .size = 1, .batch = {.parts = 1}, .world = MPI_COMM_NULL, .node = MPI_COMM_NULL, .transport = "mpi"};
    for (int a = 0; a < axes_count(); a++) {
        mesh.sizes.size[a] = 1;
        mesh.axis[a] = axis_alone(axis_rows[a].name);
    }
    return mesh;
}

void mesh_free(struct mesh *mesh) {
    for (int a = 0; a < axes_count(); a++) axis_free(&mesh->axis[a]);
    staging_free(mesh->staging);
    if (mesh->node != MPI_COMM_NULL) MPI_Comm_free(&mesh->node);
    if (mesh->world != MPI_COMM_NULL) MPI_Comm_free(&mesh->world);
    *mesh = mesh_alone();
}

int mesh_sum(struct mesh *mesh, double *values, int count) {
    for (int i = 0; i < axes_count(); i++) {
        struct axis *axis = &mesh->axis[axis_sum_order[i]];
        if (axis_rows[axis_sum_order[i]].pieces) continue; /* among the copies */
        axis_sum_doubles(axis, values, count);
        if (axis->status) return axis->status;
    }
    return 0;
}

/* Before this rank waits for all others. */
static void before_wait(const struct mesh *mesh) {
    if (mesh->polling) return; /* a thread that has no axes */
    for (int i = 0; i < axes_count(); i++)
        axis_before_wait(&mesh->axis[axis_sum_order[i]]); /* failures show in the device's status */
}

static int agree(const struct mesh *mesh, int status) {
    before_wait(mesh);
    int mine = status ? mesh->rank : mesh->size, lowest = mine;
    MPI_TRY(polling_allreduce(mesh->polling, &mine, &lowest, 1, MPI_INT, MPI_MIN, mesh->world));
    if (lowest == mesh->size) return 0;

    struct {
        int status;
        char text[4096];
    } outcome = {.status = status};
    if (mesh->rank == lowest) {
        int at = snprintf(outcome.text, sizeof outcome.text, "rank %d on %s: ", mesh->rank, mesh->host);
        snprintf(outcome.text + at, sizeof outcome.text - (size_t)at, "%s",
                 *gdn_failure() ? gdn_failure() : "failed without saying why");
    }
    MPI_TRY(polling_broadcast(mesh->polling, &outcome, sizeof outcome, lowest, mesh->world));
    gdn_failure_clear();
    return gdn_fail(outcome.status, "%s", outcome.text);
}

int mesh_agree(const struct mesh *mesh, int status) {
    if (mesh->size == 1) return status;
    activity_enter("mesh", "agreement", -1, -1);
    status = agree(mesh, status);
    activity_leave();
    return status;
}

int mesh_wait(const struct mesh *mesh, void (*tick)(void *), void *input) {
    MPI_Request request;
    int all = 0;
    if (mesh->size == 1) return 0;
    activity_enter("mesh", "wait", -1, -1);
    int code = MPI_Ibarrier(mesh->world, &request);
    while (code == MPI_SUCCESS && !(code = MPI_Test(&request, &all, MPI_STATUS_IGNORE)) && !all) {
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
        tick(input);
    }
    activity_leave();
    MPI_TRY(code);
    return 0;
}

static void renew(void *unused) {
    (void)unused;
    activity_renew();
}

int mesh_agree_late(const struct mesh *mesh, int status) {
    const int failed = mesh_wait(mesh, renew, NULL);
    return failed ? failed : mesh_agree(mesh, status);
}

int mesh_any(const struct mesh *mesh, int flag) {
    int mine = flag != 0, any = 0;
    if (mesh->size == 1) return mine;
    activity_enter("mesh", "flag", -1, -1);
    before_wait(mesh);
    int code = polling_allreduce(mesh->polling, &mine, &any, 1, MPI_INT, MPI_MAX, mesh->world);
    activity_leave();
    if (code != MPI_SUCCESS) {
        mpi_failed(code, "MPI_Allreduce of a flag");
        return -1;
    }
    return any;
}

int mesh_reduce(const struct mesh *mesh, void *values, int count, MPI_Datatype type, MPI_Op operation) {
    if (mesh->size == 1) return 0;
    activity_enter("mesh", "reduction", -1, -1);
    before_wait(mesh);
    int code = polling_allreduce(mesh->polling, MPI_IN_PLACE, values, count, type, operation, mesh->world);
    activity_leave();
    MPI_TRY(code);
    return 0;
}

int mesh_find_max(const struct mesh *mesh, long value, int *rank) {
    struct {
        long value;
        int rank;
    } max = {value, mesh->rank};
    TRY(mesh_reduce(mesh, &max, 1, MPI_LONG_INT, MPI_MAXLOC));
    *rank = max.rank;
    return 0;
}

static int broadcast(const struct mesh *mesh, int root, void *bytes, long count) {
    enum { PIECE = 1 << 28 }; /* MPI counts in int */
    before_wait(mesh);
    for (long at = 0; at < count; at += PIECE) {
        int piece = count - at < PIECE ? (int)(count - at) : PIECE;
        MPI_TRY(polling_broadcast(mesh->polling, (char *)bytes + at, piece, root, mesh->world));
    }
    return 0;
}

int mesh_broadcast_from(const struct mesh *mesh, int root, void *bytes, long count) {
    if (mesh->size == 1) return 0;
    activity_enter("mesh", "broadcast", -1, -1);
    int status = broadcast(mesh, root, bytes, count);
    activity_leave();
    return status;
}

int mesh_broadcast(const struct mesh *mesh, void *bytes, long count) {
    return mesh_broadcast_from(mesh, 0, bytes, count);
}

int mesh_gather(const struct mesh *mesh, const void *mine, long bytes, void *all) {
    if (mesh->size == 1) {
        memcpy(all, mine, (size_t)bytes);
        return 0;
    }
    activity_enter("mesh", "gather", -1, -1);
    before_wait(mesh);
    int code = polling_allgather(mesh->polling, mine, (int)bytes, all, mesh->world);
    activity_leave();
    MPI_TRY(code);
    return 0;
}

enum { PAIR_TAG = 7 };

int mesh_send(const struct mesh *mesh, int rank, const void *bytes, int count) {
    activity_enter("mesh", "send", -1, rank);
    int code = MPI_Send(bytes, count, MPI_BYTE, rank, PAIR_TAG, mesh->world);
    activity_leave();
    MPI_TRY(code);
    return 0;
}

int mesh_receive(const struct mesh *mesh, int rank, void *bytes, int count) {
    activity_enter("mesh", "receive", -1, rank);
    int code = MPI_Recv(bytes, count, MPI_BYTE, rank, PAIR_TAG, mesh->world, MPI_STATUS_IGNORE);
    activity_leave();
    MPI_TRY(code);
    return 0;
}
