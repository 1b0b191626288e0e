/* Which ways the buffers of a mesh's axes take, and opening them. */
#include "dist/mesh/mesh.h"
#include "dist/mpi/mpi_error.h"
#include "dist/comm/staging.h"
#include "dist/mpi/activity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double SECONDS = 600;

/* What stands in the way of device communicators. */
enum hindrance { NONE, NO_DEVICE_COMM, SHARED_DEVICE };

struct rank_device {
    char host[64];
    int number; /* on the host */
    bool has_comm;
};

/* Looks at all ranks' GPUs; *first and *second: the ranks of a GPU that two share, or without device
 * communicators. */
static enum hindrance look(const struct rank_device *devices, int ranks, int *first, int *second) {
    for (*first = *second = 0; *first < ranks; ++*first) {
        if (!devices[*first].has_comm) return NO_DEVICE_COMM;
        for (*second = 0; *second < *first; ++*second)
            if (devices[*first].number == devices[*second].number &&
                strcmp(devices[*first].host, devices[*second].host) == 0)
                return SHARED_DEVICE;
    }
    return NONE;
}

static int refuse(enum hindrance hindrance, const struct device *device, const struct rank_device *devices,
                  int first, int second) {
    if (hindrance == NO_DEVICE_COMM)
        return gdn_fail(
            GDN_INPUT,
            "mesh.transport: nccl, but rank %d on %s has none: device %s was built without NCCL; use "
            "auto or staged",
            first, devices[first].host, device->name);
    return gdn_fail(
        GDN_INPUT,
        "mesh.transport: nccl, but ranks %d and %d share GPU %d of %s, which NCCL refuses; use auto or "
        "staged, or a GPU for each rank",
        second, first, devices[first].number, devices[first].host);
}

/* *direct: whether buffers go over device communicators. The same on all ranks. */
static int choose(struct mesh *mesh, const struct device *device, enum mesh_transport choice, bool *direct) {
    struct rank_device mine = {.number = device->number(), .has_comm = device->comm != NULL};
    struct rank_device *devices = calloc((size_t)mesh->size, sizeof *devices);
    TRY(mesh_agree(mesh,
                   devices ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the list of ranks' devices")));
    const char *host = getenv("NCCL_HOSTID"); /* by which NCCL tells hosts apart, where it is set */
    snprintf(mine.host, sizeof mine.host, "%s", host ? host : mesh->host);
    int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, devices, sizeof mine, MPI_BYTE, mesh->world);
    int first, second;
    enum hindrance hindrance = look(devices, mesh->size, &first, &second);
    *direct = choice != MESH_STAGED && hindrance == NONE;
    int status = 0;
    if (choice == MESH_NCCL && hindrance != NONE) status = refuse(hindrance, device, devices, first, second);
    free(devices);
    MPI_TRY(code);
    return status;
}

/* One rank makes the id, all of the axis open the device communicator with it. */
static int open_device_comm(struct axis *axis) {
    const struct device_comm_ops *comms = axis->ops->device->comm;
    struct {
        int status;
        char id[DEVICE_COMM_ID];
    } made = {0};
    if (axis->size == 1) return 0;
    if (axis->index == 0) made.status = comms->identify(made.id);
    MPI_TRY(MPI_Bcast(&made, sizeof made, MPI_BYTE, 0, axis->comm));
    if (made.status) return made.status;
    const struct device_comm_info end = {
        .index = axis->index, .size = axis->size, .name = axis->name, .seconds = axis->timeout};
    axis->device_comm = comms->open(&end, made.id);
    return axis->device_comm ? 0 : GDN_INTERNAL;
}

/* One axis after the other, so that no rank waits for one that waits for it. */
static int open_device_comms(struct mesh *mesh) {
    for (int i = 0; i < axes_count(); i++) {
        struct axis *axis = &mesh->axis[axis_order[i]];
        activity_enter(axis->name, "opening of device communicators", -1, -1);
        int status = open_device_comm(axis);
        activity_leave();
        TRY(mesh_agree(mesh, status));
    }
    return 0;
}

int mesh_validate_host(const char *name, enum mesh_transport choice) {
    if (choice != MESH_NCCL) return 0;
    return gdn_fail(GDN_INPUT, "mesh.transport: nccl goes from GPU to GPU, but the device is %s; use auto",
                    name);
}

int mesh_use(struct mesh *mesh, const struct ops *ops, enum mesh_transport choice, double seconds) {
    bool direct = false;
    for (int a = 0; a < axes_count(); a++)
        mesh->axis[a].ops = ops, mesh->axis[a].timeout = seconds > 0 ? seconds : SECONDS;
    if (ops->device->host) return mesh_validate_host(ops->name, choice);
    TRY(mesh_agree(mesh, staging_create(ops->device, &mesh->staging)));
    for (int a = 0; a < axes_count(); a++) mesh->axis[a].staging = mesh->staging;
    if (mesh->size > 1) TRY(choose(mesh, ops->device, choice, &direct));
    mesh->transport = direct ? "nccl" : "staged";
    return direct ? open_device_comms(mesh) : 0;
}
