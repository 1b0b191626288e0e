/* The transfers under way stand in two parallel arrays, so that MPI can be given all requests at once; those
 * that are done give their place to the last one. */
#include "dist/transport.h"
#include "dist/mpi_check.h"

#include <limits.h>
#include <stdlib.h>

struct transport {
    struct axis *axis;
    MPI_Comm comm; /* a duplicate, so that message numbers meet no other tags */
    int capacity, count;
    MPI_Request *request; /* [capacity], of which `count` are under way */
    int *holder;          /* [capacity] */
};

static int check_tags(int messages) {
    int *most = NULL, found = 0; /* an attribute of this communicator, for all */
    MPI_TRY(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found));
    if (!found || messages - 1 <= *most) return 0;
    return gdn_fail(
        GDN_INPUT,
        "a step sends %d messages between pipeline stages, but this MPI tells only %d apart; use a larger "
        "train.micro_batch_size",
        messages, *most);
}

int transport_create(struct axis *axis, int transfers, int messages, struct transport **out) {
    /* First what needs the other ranks, so that none waits for one that has no memory. */
    MPI_Comm comm = MPI_COMM_NULL;
    if (axis->comm != MPI_COMM_NULL) {
        MPI_TRY(MPI_Comm_dup(axis->comm, &comm));
        MPI_TRY(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    }
    struct transport *t = *out = calloc(1, sizeof *t);
    if (!t) return gdn_fail(GDN_INTERNAL, "out of memory for messages between pipeline stages");
    *t = (struct transport){.axis = axis, .comm = comm, .capacity = transfers};
    t->request = calloc((size_t)transfers + 1, sizeof *t->request);
    t->holder = calloc((size_t)transfers + 1, sizeof *t->holder);
    int status = check_tags(messages);
    if (!t->request || !t->holder)
        status = gdn_fail(GDN_INTERNAL, "out of memory for %d messages between pipeline stages", transfers);
    if (!status) return 0;
    transport_free(t);
    *out = NULL;
    return status;
}

void transport_free(struct transport *transport) {
    if (!transport) return;
    if (transport->comm != MPI_COMM_NULL) MPI_Comm_free(&transport->comm);
    free(transport->request);
    free(transport->holder);
    free(transport);
}

/* The place of a new transfer, or NULL where the axis has failed. */
static MPI_Request *begin(struct transport *t, int holder, long count) {
    if (t->axis->status) return NULL;
    if (t->count == t->capacity || count > INT_MAX) {
        t->axis->status =
            gdn_fail(GDN_INTERNAL,
                     "a message of %ld elements between pipeline stages, with %d of %d under way, is more "
                     "than was reckoned with",
                     count, t->count, t->capacity);
        return NULL;
    }
    t->axis->seconds -= MPI_Wtime();
    t->holder[t->count] = holder;
    return &t->request[t->count++];
}

static void end(struct transport *t, int code, const char *call) {
    t->axis->seconds += MPI_Wtime();
    if (code != MPI_SUCCESS) t->axis->status = mpi_failed(code, call);
}

void transport_receive(struct transport *transport, int holder, real *x, long count, int peer, int message) {
    MPI_Request *request = begin(transport, holder, count);
    if (!request) return;
    end(transport, MPI_Irecv(x, (int)count, REAL_TYPE, peer, message, transport->comm, request), "MPI_Irecv");
}

void transport_send(struct transport *transport, int holder, const real *x, long count, int peer,
                    int message) {
    MPI_Request *request = begin(transport, holder, count);
    if (!request) return;
    transport->axis->bytes += count * (int64_t)sizeof(real);
    end(transport, MPI_Isend(x, (int)count, REAL_TYPE, peer, message, transport->comm, request), "MPI_Isend");
}

void transport_wait(struct transport *transport, int holder) {
    struct transport *t = transport;
    for (int i = t->count; i-- > 0 && !t->axis->status;) {
        if (t->holder[i] != holder) continue;
        t->axis->seconds -= MPI_Wtime();
        end(t, MPI_Wait(&t->request[i], MPI_STATUS_IGNORE), "MPI_Wait");
        t->count--;
        t->request[i] = t->request[t->count];
        t->holder[i] = t->holder[t->count];
    }
}

void transport_finish(struct transport *transport) {
    struct transport *t = transport;
    if (!t->count || t->axis->status) return;
    t->axis->seconds -= MPI_Wtime();
    end(t, MPI_Waitall(t->count, t->request, MPI_STATUSES_IGNORE), "MPI_Waitall");
    t->count = 0;
}
