/* Which ways the buffers of a mesh's axes take, and opening them. */
#include "dist/mesh/mesh.h"
#include "dist/mpi/mpi_check.h"
#include "dist/comm/staging.h"
#include "dist/mpi/activity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double SECONDS = 600;

/* What stands in the way of wires. */
enum hindrance { NONE, NO_WIRES, SHARED_CARD };

struct card {
    char host[64];
    int number; /* on the host */
    bool wires;
};

/* Looks at all ranks' cards; *first and *second: the ranks of a card that two share, or without wires. */
static enum hindrance look(const struct card *card, int ranks, int *first, int *second) {
    for (*first = *second = 0; *first < ranks; ++*first) {
        if (!card[*first].wires) return NO_WIRES;
        for (*second = 0; *second < *first; ++*second)
            if (card[*first].number == card[*second].number &&
                strcmp(card[*first].host, card[*second].host) == 0)
                return SHARED_CARD;
    }
    return NONE;
}

static int refuse(enum hindrance hindrance, const struct device *device, const struct card *card, int first,
                  int second) {
    if (hindrance == NO_WIRES)
        return gdn_fail(
            GDN_INPUT,
            "mesh.transport: nccl, but rank %d on %s has none: device %s was built without NCCL; use "
            "auto or staged",
            first, card[first].host, device->name);
    return gdn_fail(
        GDN_INPUT,
        "mesh.transport: nccl, but ranks %d and %d share card %d of %s, which NCCL refuses; use auto or "
        "staged, or a card for each rank",
        second, first, card[first].number, card[first].host);
}

/* *wired: whether buffers go over wires. The same on all ranks. */
static int choose(struct mesh *mesh, const struct device *device, enum mesh_transport choice, bool *wired) {
    struct card mine = {.number = device->number(), .wires = device->wires != NULL};
    struct card *card = calloc((size_t)mesh->size, sizeof *card);
    TRY(mesh_agree(mesh, card ? 0 : gdn_fail(GDN_INTERNAL, "out of memory for the list of ranks' devices")));
    const char *host = getenv("NCCL_HOSTID"); /* by which NCCL tells hosts apart, where it is set */
    snprintf(mine.host, sizeof mine.host, "%s", host ? host : mesh->host);
    int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, card, sizeof mine, MPI_BYTE, mesh->world);
    int first, second;
    enum hindrance hindrance = look(card, mesh->size, &first, &second);
    *wired = choice != MESH_STAGED && hindrance == NONE;
    int status = 0;
    if (choice == MESH_NCCL && hindrance != NONE) status = refuse(hindrance, device, card, first, second);
    free(card);
    MPI_TRY(code);
    return status;
}

/* One rank makes the id, all of the axis open the wire with it. */
static int open_wire(struct axis *axis) {
    const struct wires *wires = axis->ops->device->wires;
    struct {
        int status;
        char id[WIRES_ID];
    } made = {0};
    if (axis->size == 1) return 0;
    if (axis->index == 0) made.status = wires->identify(made.id);
    MPI_TRY(MPI_Bcast(&made, sizeof made, MPI_BYTE, 0, axis->comm));
    if (made.status) return made.status;
    const struct wire_end end = {
        .index = axis->index, .size = axis->size, .words = axis->name, .seconds = axis->patience};
    axis->wire = wires->open(&end, made.id);
    return axis->wire ? 0 : GDN_INTERNAL;
}

/* One axis after the other, so that no rank waits for one that waits for it. */
static int open_wires(struct mesh *mesh) {
    struct axis *axes[] = {&mesh->tensor, &mesh->data, &mesh->pipeline};
    for (int i = 0; i < 3; i++) {
        activity_enter(axes[i]->name, "opening of wires", -1, -1);
        int status = open_wire(axes[i]);
        activity_leave();
        TRY(mesh_agree(mesh, status));
    }
    return 0;
}

int mesh_use(struct mesh *mesh, const struct ops *ops, enum mesh_transport choice, double seconds) {
    struct axis *axes[] = {&mesh->tensor, &mesh->data, &mesh->pipeline};
    bool wired = false;
    for (int i = 0; i < 3; i++) axes[i]->ops = ops, axes[i]->patience = seconds > 0 ? seconds : SECONDS;
    if (ops->device->host && choice == MESH_NCCL)
        return gdn_fail(GDN_INPUT,
                        "mesh.transport: nccl goes from card to card, but the device is %s; use auto",
                        ops->name);
    if (ops->device->host) return 0;
    TRY(mesh_agree(mesh, staging_create(ops->device, &mesh->staging)));
    for (int i = 0; i < 3; i++) axes[i]->staging = mesh->staging;
    if (mesh->size > 1) TRY(choose(mesh, ops->device, choice, &wired));
    mesh->transport = wired ? "nccl" : "staged";
    return wired ? open_wires(mesh) : 0;
}
