#include "dist/comm/lanes.h"
#include "dist/mpi/mpi_check.h"
#include "dist/mpi/activity.h"

#include <stdlib.h>

static const struct wires *wires_of(const struct axis *axis) {
    return axis->ops->device->wires;
}

/* ------------------------------------------------------------------------------------------------- creation
 */

enum { SOURCE, TARGET, ENDS };

/* The source makes the id. */
static int open_lane(struct lanes *lanes, int source, int target) {
    struct axis *axis = lanes->axis;
    struct {
        int status;
        char id[WIRES_ID];
    } made = {0};
    if (axis->index == source) made.status = wires_of(axis)->identify(made.id);
    MPI_TRY(MPI_Bcast(&made, sizeof made, MPI_BYTE, source, lanes->comm));
    if (made.status)
        return gdn_fail(GDN_INTERNAL, "no wire from pipeline rank %d to %d: rank %d cannot make one", source,
                        target, source);
    if (axis->index != source && axis->index != target) return 0;
    const struct wire_end end = {.index = axis->index == source ? SOURCE : TARGET,
                                 .size = ENDS,
                                 .apart = true,
                                 .words = axis->name,
                                 .seconds = axis->patience};
    struct lane *lane = axis->index == source ? &lanes->to[target] : &lanes->from[source];
    lane->wire = wires_of(axis)->open(&end, made.id);
    return lane->wire ? 0 : GDN_INTERNAL;
}

/* In the same order on all ranks, so that none waits for one that waits for it. */
static int open_lanes(struct lanes *lanes) {
    int size = lanes->axis->size;
    for (int source = 0; source < size; source++)
        for (int target = 0; target < size; target++) {
            int distance = (target - source + size) % size;
            if (distance == 1 || distance == size - 1) TRY(open_lane(lanes, source, target));
        }
    return 0;
}

int lanes_create(struct axis *axis, MPI_Comm comm, struct lanes **out) {
    struct lanes *lanes = *out = calloc(1, sizeof *lanes);
    if (!lanes) return gdn_fail(GDN_INTERNAL, "out of memory for wires between pipeline stages");
    *lanes = (struct lanes){.axis = axis, .comm = comm};
    lanes->from = calloc(2 * (size_t)axis->size, sizeof *lanes->from);
    lanes->to = lanes->from + axis->size;
    if (!lanes->from) return gdn_fail(GDN_INTERNAL, "out of memory for wires between pipeline stages");
    activity_enter(axis->name, "opening of wires", -1, -1);
    int status = open_lanes(lanes);
    activity_leave();
    return status;
}

void lanes_free(struct lanes *lanes) {
    if (!lanes) return;
    for (int i = 0; lanes->from && i < 2 * lanes->axis->size; i++) {
        if (lanes->from[i].wire) wires_of(lanes->axis)->close(lanes->from[i].wire);
        free(lanes->from[i].message);
    }
    free(lanes->from);
    free(lanes);
}

/* ---------------------------------------------------------------------------------------------------- order
 */

static int make_list(struct lane *lane, int count) {
    free(lane->message);
    lane->message = malloc(((size_t)count + 1) * sizeof *lane->message);
    lane->count = lane->next = 0;
    if (lane->message) return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory for the order of messages between pipeline stages");
}

/* Every receiver's list to the sender. */
static int exchange_lists(struct lanes *lanes, const int *counts, const int *given) {
    int size = lanes->axis->size;
    MPI_Request request[2];
    for (int step = 1; step < size; step++) {
        int source = (lanes->axis->index + step) % size, target = (lanes->axis->index + size - step) % size;
        struct lane *from = &lanes->from[source], *to = &lanes->to[target];
        to->count = given[target];
        MPI_TRY(MPI_Irecv(to->message, given[target], MPI_INT, target, 0, lanes->comm, &request[0]));
        MPI_TRY(MPI_Isend(from->message, counts[source], MPI_INT, source, 0, lanes->comm, &request[1]));
        MPI_TRY(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    }
    return 0;
}

static int exchange(struct lanes *lanes, int *counts, int *given) {
    int size = lanes->axis->size;
    for (int r = 0; r < size; r++) counts[r] = lanes->from[r].count;
    MPI_TRY(MPI_Alltoall(counts, 1, MPI_INT, given, 1, MPI_INT, lanes->comm));
    for (int r = 0; r < size; r++) TRY(make_list(&lanes->to[r], given[r]));
    return exchange_lists(lanes, counts, given);
}

int lanes_expect(struct lanes *lanes, int count, const int *peer, const int *message) {
    int size = lanes->axis->size, *counts = calloc(2 * (size_t)size, sizeof *counts);
    if (!counts) return gdn_fail(GDN_INTERNAL, "out of memory for the order of messages");
    int status = 0;
    for (int r = 0; r < size && !status; r++) status = make_list(&lanes->from[r], count);
    for (int i = 0; i < count && !status; i++) {
        struct lane *lane = &lanes->from[peer[i]];
        lane->message[lane->count++] = message[i];
    }
    activity_enter(lanes->axis->name, "exchange of message lists", -1, -1);
    if (!status) status = exchange(lanes, counts, counts + size);
    activity_leave();
    free(counts);
    return status;
}

void lanes_rewind(struct lanes *lanes) {
    for (int i = 0; i < 2 * lanes->axis->size; i++) lanes->from[i].next = 0;
}

/* ------------------------------------------------------------------------------------------------- messages
 */

bool lane_turn(const struct lane *lane, int message) {
    return lane->wire && lane->next < lane->count && lane->message[lane->next] == message;
}

int lane_send(struct lanes *lanes, int peer, const real *x, long count) {
    const struct wires *wires = wires_of(lanes->axis);
    struct lane *lane = &lanes->to[peer];
    lane->next++;
    if (!count) return -1;
    wires->begin(lane->wire, "a send");
    wires->send(lane->wire, x, (size_t)count * sizeof *x, TARGET);
    return wires->end(lane->wire);
}

int lane_receive(struct lanes *lanes, int peer, real *x, long count) {
    const struct wires *wires = wires_of(lanes->axis);
    struct lane *lane = &lanes->from[peer];
    lane->next++;
    if (!count) return -1;
    wires->begin(lane->wire, "a receive");
    wires->receive(lane->wire, x, (size_t)count * sizeof *x, SOURCE);
    return wires->end(lane->wire);
}
