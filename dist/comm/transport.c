/* A transfer stays where it is while it is under way (dist/comm/async_op.h points to it), so those that are
 * open are kept as a list of numbers; one that is done gives its place there to the last. */
#include "dist/comm/transport.h"
#include "dist/comm/p2p.h"
#include "dist/mpi/mpi_error.h"
#include "dist/comm/async_op.h"
#include "dist/mpi/activity.h"

#include <stdlib.h>

struct transfer {
    int owner;
    struct async_op op;              /* over MPI */
    struct device_comm *device_comm; /* over a device communicator; NULL: not, or not yet */
    int ticket;                      /* −1: of an empty message */
    bool held;                       /* a send whose turn on the channel has not come: */
    const void *x;
    long count;
    int peer, message;
};

struct transport {
    struct axis *axis;
    enum wire wire;                /* the type of all messages' elements */
    MPI_Comm comm;                 /* a duplicate, so that message numbers meet no other tags */
    struct p2p_channels *channels; /* NULL: all goes over MPI */
    int capacity, count;
    struct transfer *transfer; /* [capacity] */
    int *open; /* [capacity] numbers of transfers: the first `count` are under way, others free */
};

static int validate_tags(int messages) {
    int *max = NULL, found = 0; /* an attribute of this communicator, for all */
    MPI_TRY(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &max, &found));
    if (!found || messages - 1 <= *max) return 0;
    return gdn_fail(
        GDN_INPUT,
        "a step sends %d messages between pipeline stages, but this MPI tells only %d apart; use a larger "
        "train.micro_batch_size",
        messages, *max);
}

int transport_create(struct axis *axis, enum wire wire, int transfers, int messages, struct transport **out) {
    /* First what needs the other ranks, so that none waits for one that has no memory. */
    MPI_Comm comm = MPI_COMM_NULL;
    struct p2p_channels *channels = NULL;
    int status = 0;
    if (axis->comm != MPI_COMM_NULL) {
        MPI_TRY(MPI_Comm_dup(axis->comm, &comm));
        MPI_TRY(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    }
    if (axis->device_comm) status = p2p_create(axis, comm, &channels);
    struct transport *t = *out = calloc(1, sizeof *t);
    if (!t) return gdn_fail(GDN_INTERNAL, "out of memory for messages between pipeline stages");
    *t = (struct transport){
        .axis = axis, .wire = wire, .comm = comm, .channels = channels, .capacity = transfers};
    t->transfer = calloc((size_t)transfers + 1, sizeof *t->transfer);
    t->open = calloc((size_t)transfers + 1, sizeof *t->open);
    for (int i = 0; t->open && i < transfers; i++) t->open[i] = i;
    if (!status && comm != MPI_COMM_NULL) status = validate_tags(messages);
    if (!t->transfer || !t->open)
        status = gdn_fail(GDN_INTERNAL, "out of memory for %d messages between pipeline stages", transfers);
    if (!status) return 0;
    transport_free(t);
    *out = NULL;
    return status;
}

void transport_free(struct transport *transport) {
    if (!transport) return;
    p2p_free(transport->channels);
    if (transport->comm != MPI_COMM_NULL) MPI_Comm_free(&transport->comm);
    free(transport->transfer);
    free(transport->open);
    free(transport);
}

void transport_expect(struct transport *transport, int count, const int *peer, const int *message) {
    struct transport *t = transport;
    if (!t->channels || t->axis->status) return;
    t->axis->status = p2p_expect(t->channels, count, peer, message);
}

static size_t bytes_of(const struct transport *t, long count) {
    return (size_t)count * wire_bytes(t->wire);
}

/* On a planned axis messages are only counted. */
static bool only_counts(const struct transport *t) {
    return t->comm == MPI_COMM_NULL && t->axis->size > 1;
}

/* The place of a new transfer, or NULL where the axis has failed. */
static struct transfer *begin(struct transport *t, int owner, long count) {
    if (t->axis->status) return NULL;
    if (t->count == t->capacity) {
        t->axis->status =
            gdn_fail(GDN_INTERNAL,
                     "a message of %ld elements between pipeline stages, with %d of %d under way, is more "
                     "than was reckoned with",
                     count, t->count, t->capacity);
        return NULL;
    }
    t->axis->seconds -= MPI_Wtime();
    struct transfer *transfer = &t->transfer[t->open[t->count++]];
    *transfer = (struct transfer){.owner = owner};
    return transfer;
}

static void end(struct transport *t, int status) {
    t->axis->seconds += MPI_Wtime();
    if (!t->axis->status) t->axis->status = status;
}

static int out_of_turn(const char *what, int message) {
    return gdn_fail(GDN_INTERNAL, "the schedule is at fault: it is not the turn of message %d to be %s",
                    message, what);
}

/* --------------------------------------------------------------------------- over device communicators */

/* Sends what was held back and whose turn it is. */
static void send_held(struct transport *t, int peer) {
    struct p2p_channel *channel = &t->channels->to[peer];
    for (int i = 0; i < t->count; i++) {
        struct transfer *transfer = &t->transfer[t->open[i]];
        if (!transfer->held || transfer->peer != peer || !p2p_turn(channel, transfer->message)) continue;
        transfer->held = false;
        transfer->device_comm = channel->device_comm;
        transfer->ticket = p2p_send(t->channels, peer, transfer->x, bytes_of(t, transfer->count));
        i = -1; /* one before it may be next */
    }
}

static int receive_over_channel(struct transport *t, struct transfer *transfer, void *x, long count, int peer,
                                int message) {
    struct p2p_channel *channel = &t->channels->from[peer];
    if (!p2p_turn(channel, message)) return out_of_turn("received", message);
    transfer->device_comm = channel->device_comm;
    transfer->ticket = p2p_receive(t->channels, peer, x, bytes_of(t, count));
    return 0;
}

/* ------------------------------------------------------------------------------------------- the calls */

void transport_receive(struct transport *transport, int owner, void *x, long count, int peer, int message,
                       bool on_host) {
    struct transport *t = transport;
    if (only_counts(t)) return;
    struct transfer *transfer = begin(t, owner, count);
    if (!transfer) return;
    if (t->channels && !on_host)
        end(t, receive_over_channel(t, transfer, x, count, peer, message));
    else
        end(t, async_op_receive(&transfer->op, t->axis, t->comm, x, count, t->wire, peer, message, on_host));
}

void transport_send(struct transport *transport, int owner, const void *x, long count, int peer, int message,
                    bool on_host) {
    struct transport *t = transport;
    struct transfer *transfer = only_counts(t) ? NULL : begin(t, owner, count);
    if (t->axis->status) return;
    t->axis->bytes += (int64_t)bytes_of(t, count);
    t->axis->calls++;
    if (!transfer) return;
    if (t->channels && !on_host) {
        transfer->held = true;
        transfer->x = x, transfer->count = count;
        transfer->peer = peer, transfer->message = message;
        send_held(t, peer);
        end(t, 0);
        return;
    }
    end(t, async_op_send(&transfer->op, t->axis, t->comm, x, count, t->wire, peer, message, on_host));
}

static int finish(struct transport *t, struct transfer *transfer) {
    if (transfer->held) return out_of_turn("waited for", transfer->message);
    if (transfer->device_comm && transfer->ticket >= 0)
        t->axis->ops->device->comm->join(transfer->device_comm, transfer->ticket);
    return transfer->device_comm ? 0 : async_op_end(&transfer->op);
}

/* Ends the i-th that is under way. */
static void close_transfer(struct transport *t, int i) {
    int done = t->open[i];
    const struct async_op *op =
        &t->transfer[done].op; /* with nothing in it over a device communicator, which waits on the device */
    t->axis->seconds -= MPI_Wtime();
    activity_enter(t->axis->name, op->kind == ASYNC_RECEIVE ? "receive" : "send", op->count,
                   op->axis ? op->peer : -1);
    end(t, finish(t, &t->transfer[done]));
    activity_leave();
    t->open[i] = t->open[--t->count];
    t->open[t->count] = done;
}

void transport_progress(struct transport *transport) {
    struct transport *t = transport;
    if (only_counts(t) || !t->count || t->axis->status) return;
    int status = 0;
    t->axis->seconds -= MPI_Wtime();
    for (int i = 0; i < t->count && !status; i++) /* over a device communicator there is nothing in it */
        status = async_op_move(&t->transfer[t->open[i]].op);
    end(t, status);
}

void transport_wait(struct transport *transport, int owner) {
    struct transport *t = transport;
    if (only_counts(t)) return;
    for (int i = t->count; i-- > 0 && !t->axis->status;)
        if (t->transfer[t->open[i]].owner == owner) close_transfer(t, i);
    if (!t->axis->status) t->axis->status = t->axis->ops->device->status();
}

void transport_finish(struct transport *transport) {
    struct transport *t = transport;
    while (t->count && !t->axis->status) close_transfer(t, t->count - 1);
    if (t->channels) p2p_rewind(t->channels);
}
