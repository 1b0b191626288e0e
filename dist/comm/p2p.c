#include "dist/comm/p2p.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/activity.h"

#include <stdlib.h>

static const struct device_comm_ops *device_comm_of(const struct axis *axis) {
    return axis->ops->device->comm;
}

/* -------------------------------------------------------------------------------------------- creation */

enum { SOURCE, TARGET, ENDS };

/* The source makes the id. */
static int open_channel(struct p2p_channels *channels, int source, int target) {
    struct axis *axis = channels->axis;
    struct {
        int status;
        char id[DEVICE_COMM_ID];
    } made = {0};
    if (axis->index == source) made.status = device_comm_of(axis)->identify(made.id);
    MPI_TRY(MPI_Bcast(&made, sizeof made, MPI_BYTE, source, channels->comm));
    if (made.status)
        return gdn_fail(GDN_INTERNAL, "no communicator from pipeline rank %d to %d: rank %d cannot make one",
                        source, target, source);
    if (axis->index != source && axis->index != target) return 0;
    const struct device_comm_info end = {.index = axis->index == source ? SOURCE : TARGET,
                                         .size = ENDS,
                                         .own_queue = true,
                                         .name = axis->name,
                                         .seconds = axis->timeout};
    struct p2p_channel *channel = axis->index == source ? &channels->to[target] : &channels->from[source];
    channel->device_comm = device_comm_of(axis)->open(&end, made.id);
    return channel->device_comm ? 0 : GDN_INTERNAL;
}

/* In the same order on all ranks, so that none waits for one that waits for it. */
static int open_channels(struct p2p_channels *channels) {
    int size = channels->axis->size;
    for (int source = 0; source < size; source++)
        for (int target = 0; target < size; target++) {
            int distance = (target - source + size) % size;
            if (distance == 1 || distance == size - 1) TRY(open_channel(channels, source, target));
        }
    return 0;
}

int p2p_create(struct axis *axis, MPI_Comm comm, struct p2p_channels **out) {
    struct p2p_channels *channels = *out = calloc(1, sizeof *channels);
    if (!channels)
        return gdn_fail(GDN_INTERNAL, "out of memory for device communicators between pipeline stages");
    *channels = (struct p2p_channels){.axis = axis, .comm = comm};
    channels->from = calloc(2 * (size_t)axis->size, sizeof *channels->from);
    channels->to = channels->from + axis->size;
    if (!channels->from)
        return gdn_fail(GDN_INTERNAL, "out of memory for device communicators between pipeline stages");
    activity_enter(axis->name, "opening of device communicators", -1, -1);
    int status = open_channels(channels);
    activity_leave();
    return status;
}

void p2p_free(struct p2p_channels *channels) {
    if (!channels) return;
    for (int i = 0; channels->from && i < 2 * channels->axis->size; i++) {
        if (channels->from[i].device_comm)
            device_comm_of(channels->axis)->close(channels->from[i].device_comm);
        free(channels->from[i].message);
    }
    free(channels->from);
    free(channels);
}

/* ----------------------------------------------------------------------------------------------- order */

static int make_list(struct p2p_channel *channel, int count) {
    free(channel->message);
    channel->message = malloc(((size_t)count + 1) * sizeof *channel->message);
    channel->count = channel->next = 0;
    if (channel->message) return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory for the order of messages between pipeline stages");
}

/* Every receiver's list to the sender. */
static int exchange_lists(struct p2p_channels *channels, const int *counts, const int *given) {
    int size = channels->axis->size;
    MPI_Request request[2];
    for (int step = 1; step < size; step++) {
        int source = (channels->axis->index + step) % size,
            target = (channels->axis->index + size - step) % size;
        struct p2p_channel *from = &channels->from[source], *to = &channels->to[target];
        to->count = given[target];
        MPI_TRY(MPI_Irecv(to->message, given[target], MPI_INT, target, 0, channels->comm, &request[0]));
        MPI_TRY(MPI_Isend(from->message, counts[source], MPI_INT, source, 0, channels->comm, &request[1]));
        MPI_TRY(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    }
    return 0;
}

static int exchange(struct p2p_channels *channels, int *counts, int *given) {
    int size = channels->axis->size;
    for (int r = 0; r < size; r++) counts[r] = channels->from[r].count;
    MPI_TRY(MPI_Alltoall(counts, 1, MPI_INT, given, 1, MPI_INT, channels->comm));
    for (int r = 0; r < size; r++) TRY(make_list(&channels->to[r], given[r]));
    return exchange_lists(channels, counts, given);
}

int p2p_expect(struct p2p_channels *channels, int count, const int *peer, const int *message) {
    int size = channels->axis->size, *counts = calloc(2 * (size_t)size, sizeof *counts);
    if (!counts) return gdn_fail(GDN_INTERNAL, "out of memory for the order of messages");
    int status = 0;
    for (int r = 0; r < size && !status; r++) status = make_list(&channels->from[r], count);
    for (int i = 0; i < count && !status; i++) {
        struct p2p_channel *channel = &channels->from[peer[i]];
        channel->message[channel->count++] = message[i];
    }
    activity_enter(channels->axis->name, "exchange of message lists", -1, -1);
    if (!status) status = exchange(channels, counts, counts + size);
    activity_leave();
    free(counts);
    return status;
}

void p2p_rewind(struct p2p_channels *channels) {
    for (int i = 0; i < 2 * channels->axis->size; i++) channels->from[i].next = 0;
}

/* -------------------------------------------------------------------------------------------- messages */

bool p2p_turn(const struct p2p_channel *channel, int message) {
    return channel->device_comm && channel->next < channel->count &&
           channel->message[channel->next] == message;
}

int p2p_send(struct p2p_channels *channels, int peer, const void *x, size_t bytes) {
    const struct device_comm_ops *comms = device_comm_of(channels->axis);
    struct p2p_channel *channel = &channels->to[peer];
    channel->next++;
    if (!bytes) return -1;
    comms->begin(channel->device_comm, "a send");
    comms->send(channel->device_comm, x, bytes, TARGET);
    return comms->end(channel->device_comm);
}

int p2p_receive(struct p2p_channels *channels, int peer, void *x, size_t bytes) {
    const struct device_comm_ops *comms = device_comm_of(channels->axis);
    struct p2p_channel *channel = &channels->from[peer];
    channel->next++;
    if (!bytes) return -1;
    comms->begin(channel->device_comm, "a receive");
    comms->receive(channel->device_comm, x, bytes, SOURCE);
    return comms->end(channel->device_comm);
}
