#include "dist/comm/async_op.h"
#include "dist/mpi/mpi_error.h"

static size_t bytes_of(const struct async_op *p, long count) {
    return (size_t)count * wire_bytes(p->wire);
}

/* The i-th element. */
static void *at(const struct async_op *p, void *x, long i) {
    return (char *)x + bytes_of(p, i);
}

/* -------------------------------------------------------------------------------------------- MPI's part */

/* A message in pieces, all at once: the peer may wait for the last before this rank looks here again. MPI
 * keeps their order. */
static int launch_message(struct async_op *p) {
    long piece = mpi_piece(p->count);
    MPI_Datatype type = wire_type(p->wire);
    for (long from = 0; from == 0 || from < p->count; from += piece) { /* an empty message is one, too */
        int n = (int)(p->count - from < piece ? p->count - from : piece);
        MPI_Request *request = &p->request[p->requests++];
        if (p->kind == ASYNC_SEND)
            MPI_TRY(MPI_Isend(at(p, p->out, from), n, type, p->peer, p->tag, p->ranks.comm, request));
        else
            MPI_TRY(MPI_Irecv(at(p, p->in, from), n, type, p->peer, p->tag, p->ranks.comm, request));
    }
    return 0;
}

/* Exchanges and gathers are of a bucket, within BUCKET_MAX elements. */
static int launch(struct async_op *p) {
    int n = (int)p->count;
    p->state = ASYNC_UNDER_WAY;
    p->requests = 0;
    if (p->kind == ASYNC_SEND || p->kind == ASYNC_RECEIVE) return launch_message(p);
    MPI_Request *request = &p->request[p->requests++];
    if (p->kind == ASYNC_EXCHANGE)
        MPI_TRY(MPI_Ialltoall(p->out, n, REAL_TYPE, p->in, n, REAL_TYPE, p->ranks.comm, request));
    else
        MPI_TRY(MPI_Iallgather(MPI_IN_PLACE, 0, REAL_TYPE, p->in, n, REAL_TYPE, p->ranks.comm, request));
    return 0;
}

int async_ops_start(struct staging *staging, bool all) {
    while (staging && staging->first) {
        struct async_op *p = staging->first;
        if (!all && !staging->device->arrived(p->ticket)) return 0;
        staging->device->await(p->ticket);
        staging->first = p->next;
        int status = staging->device->status();
        if (!status) status = launch(p);
        if (status) staging->first = NULL; /* nothing goes on from here */
        TRY(status);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- host memory */

/* Elements that leave and that come in, and where among x they lie. */
static long sent(const struct async_op *p) {
    return p->kind == ASYNC_EXCHANGE ? p->ranks.size * p->count : p->kind == ASYNC_RECEIVE ? 0 : p->count;
}

static long received(const struct async_op *p) {
    return p->kind == ASYNC_SEND ? 0 : p->kind == ASYNC_RECEIVE ? p->count : p->ranks.size * p->count;
}

static long own_part(const struct async_op *p) {
    return p->kind == ASYNC_GATHER ? p->ranks.index * p->count : 0;
}

static int stage(struct async_op *p) {
    struct staging *s = p->staging;
    long out = sent(p), in = received(p);
    p->out = p->in = NULL;
    if (in && !(p->in = staging_take(s, bytes_of(p, in)))) return GDN_INTERNAL;
    if (p->kind != ASYNC_GATHER && out && !(p->out = staging_take(s, bytes_of(p, out)))) return GDN_INTERNAL;
    if (!out) return launch(p);
    void *to = p->kind == ASYNC_GATHER ? at(p, p->in, own_part(p)) : p->out;
    p->ticket = s->device->fetch(to, at(p, p->x, own_part(p)), bytes_of(p, out));
    p->state = ASYNC_FETCHED;
    p->next = NULL;
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    return 0;
}

static int start(struct async_op *p, struct staging *staging) {
    p->staging = staging;
    p->requests = 0;
    if (staging) return stage(p);
    p->out = p->x;
    p->in = p->kind == ASYNC_EXCHANGE ? p->pieces : p->x;
    return launch(p);
}

/* What MPI has brought goes on to the device. */
static int deliver(struct async_op *p) {
    struct staging *s = p->staging;
    long in = received(p);
    p->state = ASYNC_THERE;
    if (!s) return 0;
    if (p->out) staging_give(s, p->out, -1);
    if (in) {
        void *to = p->kind == ASYNC_EXCHANGE ? p->pieces : p->x;
        staging_give(s, p->in, s->device->deliver(to, p->in, bytes_of(p, in)));
    }
    return s->device->status();
}

/* --------------------------------------------------------------------------------------------- the calls */

static const struct device_comm_ops *device_comm_of(const struct axis *axis) {
    return axis->ops->device->comm;
}

/* A rank's number on the axis. */
static int on_axis(const struct async_op *p, int r) {
    return p->ranks.first + r * p->ranks.stride;
}

/* The exchange over device communicators: own parts stay on the device. */
static void exchange(struct async_op *p) {
    const struct axis *axis = p->axis;
    const struct device_comm_ops *comms = device_comm_of(axis);
    size_t bytes = bytes_of(p, p->count);
    comms->begin(axis->device_comm, "a sum of gradients");
    for (int r = 0; r < p->ranks.size; r++) {
        if (r == p->ranks.index || !bytes) continue;
        comms->send(axis->device_comm, at(p, p->x, r * p->count), bytes, on_axis(p, r));
        comms->receive(axis->device_comm, at(p, p->pieces, r * p->count), bytes, on_axis(p, r));
    }
    p->ticket = comms->end(axis->device_comm);
    long mine = p->ranks.index * p->count;
    axis->ops->device->move(at(p, p->pieces, mine), at(p, p->x, mine), bytes);
    p->state = ASYNC_ON_DEVICE;
}

/* The gather over them: all of an axis have a call of their own. */
static void gather(struct async_op *p) {
    const struct axis *axis = p->axis;
    const struct device_comm_ops *comms = device_comm_of(axis);
    const size_t bytes = bytes_of(p, p->count);
    const bool all = p->ranks.size == axis->size;
    comms->begin(axis->device_comm, "a gather of weights or gradients");
    if (bytes && all) comms->gather(axis->device_comm, p->x, bytes);
    for (int r = 0; r < p->ranks.size && bytes && !all; r++) {
        if (r == p->ranks.index) continue;
        comms->send(axis->device_comm, at(p, p->x, own_part(p)), bytes, on_axis(p, r));
        comms->receive(axis->device_comm, at(p, p->x, r * p->count), bytes, on_axis(p, r));
    }
    p->ticket = comms->end(axis->device_comm);
    p->state = ASYNC_ON_DEVICE;
}

int async_op_exchange(struct async_op *op, struct axis *axis, const struct async_ranks *ranks, real *x,
                      real *pieces, long part) {
    *op = (struct async_op){
        .kind = ASYNC_EXCHANGE, .axis = axis, .ranks = *ranks, .x = x, .pieces = pieces, .count = part};
    if (!axis->device_comm) return start(op, axis->staging);
    exchange(op);
    return 0;
}

int async_op_gather(struct async_op *op, struct axis *axis, const struct async_ranks *ranks, real *x,
                    long part) {
    *op = (struct async_op){.kind = ASYNC_GATHER, .axis = axis, .ranks = *ranks, .x = x, .count = part};
    if (!axis->device_comm) return start(op, axis->staging);
    gather(op);
    return 0;
}

int async_op_send(struct async_op *op, struct axis *axis, MPI_Comm comm, const void *x, long count,
                  enum wire wire, int peer, int tag, bool on_host) {
    *op = (struct async_op){.kind = ASYNC_SEND,
                            .axis = axis,
                            .ranks.comm = comm,
                            .x = (void *)x, /* only read */
                            .count = count,
                            .wire = wire,
                            .peer = peer,
                            .tag = tag};
    return start(op, on_host ? NULL : axis->staging);
}

int async_op_receive(struct async_op *op, struct axis *axis, MPI_Comm comm, void *x, long count,
                     enum wire wire, int peer, int tag, bool on_host) {
    *op = (struct async_op){.kind = ASYNC_RECEIVE,
                            .axis = axis,
                            .ranks.comm = comm,
                            .x = x,
                            .count = count,
                            .wire = wire,
                            .peer = peer,
                            .tag = tag};
    return start(op, on_host ? NULL : axis->staging);
}

int async_op_move(struct async_op *op) {
    int done = 0;
    if (op->axis && op->axis->staging) TRY(async_ops_start(op->axis->staging, false));
    if (op->state != ASYNC_UNDER_WAY) return 0;
    MPI_TRY(MPI_Testall(op->requests, op->request, &done, MPI_STATUSES_IGNORE));
    return done ? deliver(op) : 0;
}

bool async_op_has_come(const struct async_op *op) {
    return op->state == ASYNC_THERE;
}

int async_op_await(struct async_op *op) {
    while (op->state == ASYNC_FETCHED || op->state == ASYNC_UNDER_WAY) {
        if (op->axis->staging && op->axis->staging->first) {
            TRY(async_op_move(op));
            continue;
        }
        if (op->axis->device_comm) { /* the other end may wait for what device communicators here have yet to
                                        send */
            device_comm_of(op->axis)->poll();
            device_comm_of(op->axis)->rest();
            TRY(op->axis->ops->device->status());
            TRY(async_op_move(op));
            continue;
        }
        MPI_TRY(MPI_Waitall(op->requests, op->request, MPI_STATUSES_IGNORE));
        return deliver(op);
    }
    return 0;
}

int async_op_end(struct async_op *op) {
    TRY(async_op_await(op));
    struct axis *axis = op->axis;
    if (op->state == ASYNC_ON_DEVICE) device_comm_of(axis)->join(axis->device_comm, op->ticket);
    if (op->state == ASYNC_THERE && op->staging && received(op)) op->staging->device->join();
    op->state = ASYNC_DONE;
    return 0;
}
