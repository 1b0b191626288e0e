#include "dist/comm/parcel.h"
#include "dist/mpi/mpi_check.h"

/* ------------------------------------------------------------------------------------------------ MPI's part
 */

/* A message in pieces, all at once: the peer may wait for the last before this rank looks here again. MPI
 * keeps their order. */
static int launch_message(struct parcel *p) {
    long piece = mpi_piece(p->count);
    for (long at = 0; at == 0 || at < p->count; at += piece) { /* an empty message is one, too */
        int n = (int)(p->count - at < piece ? p->count - at : piece);
        MPI_Request *request = &p->request[p->requests++];
        if (p->kind == PARCEL_SEND)
            MPI_TRY(MPI_Isend(p->out + at, n, REAL_TYPE, p->peer, p->tag, p->comm, request));
        else
            MPI_TRY(MPI_Irecv(p->in + at, n, REAL_TYPE, p->peer, p->tag, p->comm, request));
    }
    return 0;
}

/* Exchanges and gathers are of a bucket, within BUCKET_MOST elements. */
static int launch(struct parcel *p) {
    int n = (int)p->count;
    p->state = PARCEL_UNDER_WAY;
    p->requests = 0;
    if (p->kind == PARCEL_SEND || p->kind == PARCEL_RECEIVE) return launch_message(p);
    MPI_Request *request = &p->request[p->requests++];
    if (p->kind == PARCEL_EXCHANGE)
        MPI_TRY(MPI_Ialltoall(p->out, n, REAL_TYPE, p->in, n, REAL_TYPE, p->comm, request));
    else
        MPI_TRY(MPI_Iallgather(MPI_IN_PLACE, 0, REAL_TYPE, p->in, n, REAL_TYPE, p->comm, request));
    return 0;
}

int parcels_start(struct staging *staging, bool all) {
    while (staging && staging->first) {
        struct parcel *p = staging->first;
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
static long outgoing(const struct parcel *p) {
    return p->kind == PARCEL_EXCHANGE ? p->axis->size * p->count : p->kind == PARCEL_RECEIVE ? 0 : p->count;
}

static long incoming(const struct parcel *p) {
    return p->kind == PARCEL_SEND ? 0 : p->kind == PARCEL_RECEIVE ? p->count : p->axis->size * p->count;
}

static long own_part(const struct parcel *p) {
    return p->kind == PARCEL_GATHER ? p->axis->index * p->count : 0;
}

static int stage(struct parcel *p) {
    struct staging *s = p->staging;
    long out = outgoing(p), in = incoming(p);
    p->out = p->in = NULL;
    if (in && !(p->in = staging_take(s, in))) return GDN_INTERNAL;
    if (p->kind != PARCEL_GATHER && out && !(p->out = staging_take(s, out))) return GDN_INTERNAL;
    if (!out) return launch(p);
    real *to = p->kind == PARCEL_GATHER ? p->in + own_part(p) : p->out;
    p->ticket = s->device->fetch(to, p->x + own_part(p), (size_t)out * sizeof *to);
    p->state = PARCEL_FETCHED;
    p->next = NULL;
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    return 0;
}

static int start(struct parcel *p, struct staging *staging) {
    p->staging = staging;
    p->requests = 0;
    if (staging) return stage(p);
    p->out = p->x;
    p->in = p->kind == PARCEL_EXCHANGE ? p->pieces : p->x;
    return launch(p);
}

/* What MPI has brought goes on to the device. */
static int deliver(struct parcel *p) {
    struct staging *s = p->staging;
    long in = incoming(p);
    p->state = PARCEL_THERE;
    if (!s) return 0;
    if (p->out) staging_give(s, p->out, -1);
    if (in) {
        real *to = p->kind == PARCEL_EXCHANGE ? p->pieces : p->x;
        staging_give(s, p->in, s->device->deliver(to, p->in, (size_t)in * sizeof *to));
    }
    return s->device->status();
}

/* ------------------------------------------------------------------------------------------------ the calls
 */

static const struct wires *wires_of(const struct axis *axis) {
    return axis->ops->device->wires;
}

/* The exchange over wires: own parts stay on the device. */
static void exchange(struct parcel *p) {
    const struct axis *axis = p->axis;
    const struct wires *wires = wires_of(axis);
    size_t bytes = (size_t)p->count * sizeof *p->x;
    wires->begin(axis->wire, "a sum of gradients");
    for (int r = 0; r < axis->size; r++) {
        if (r == axis->index || !bytes) continue;
        wires->send(axis->wire, p->x + r * p->count, bytes, r);
        wires->receive(axis->wire, p->pieces + r * p->count, bytes, r);
    }
    p->ticket = wires->end(axis->wire);
    axis->ops->device->move(p->pieces + axis->index * p->count, p->x + axis->index * p->count, bytes);
    p->state = PARCEL_WIRED;
}

int parcel_exchange(struct parcel *parcel, struct axis *axis, MPI_Comm comm, real *x, real *pieces,
                    long part) {
    *parcel = (struct parcel){
        .kind = PARCEL_EXCHANGE, .axis = axis, .comm = comm, .x = x, .pieces = pieces, .count = part};
    if (!axis->wire) return start(parcel, axis->staging);
    exchange(parcel);
    return 0;
}

int parcel_gather(struct parcel *parcel, struct axis *axis, MPI_Comm comm, real *x, long part) {
    *parcel = (struct parcel){.kind = PARCEL_GATHER, .axis = axis, .comm = comm, .x = x, .count = part};
    if (!axis->wire) return start(parcel, axis->staging);
    wires_of(axis)->begin(axis->wire, "a gather of weights or gradients");
    if (part) wires_of(axis)->gather(axis->wire, x, (size_t)part * sizeof *x);
    parcel->ticket = wires_of(axis)->end(axis->wire);
    parcel->state = PARCEL_WIRED;
    return 0;
}

int parcel_send(struct parcel *parcel, struct axis *axis, MPI_Comm comm, const real *x, long count, int peer,
                int tag, bool on_host) {
    *parcel = (struct parcel){.kind = PARCEL_SEND,
                              .axis = axis,
                              .comm = comm,
                              .x = (real *)x, /* only read */
                              .count = count,
                              .peer = peer,
                              .tag = tag};
    return start(parcel, on_host ? NULL : axis->staging);
}

int parcel_receive(struct parcel *parcel, struct axis *axis, MPI_Comm comm, real *x, long count, int peer,
                   int tag, bool on_host) {
    *parcel = (struct parcel){
        .kind = PARCEL_RECEIVE, .axis = axis, .comm = comm, .x = x, .count = count, .peer = peer, .tag = tag};
    return start(parcel, on_host ? NULL : axis->staging);
}

int parcel_move(struct parcel *parcel) {
    int done = 0;
    if (parcel->axis && parcel->axis->staging) TRY(parcels_start(parcel->axis->staging, false));
    if (parcel->state != PARCEL_UNDER_WAY) return 0;
    MPI_TRY(MPI_Testall(parcel->requests, parcel->request, &done, MPI_STATUSES_IGNORE));
    return done ? deliver(parcel) : 0;
}

int parcel_await(struct parcel *parcel) {
    while (parcel->state == PARCEL_FETCHED || parcel->state == PARCEL_UNDER_WAY) {
        if (parcel->axis->staging && parcel->axis->staging->first) {
            TRY(parcel_move(parcel));
            continue;
        }
        if (parcel->axis->wire) { /* the other end may wait for what wires here have yet to send */
            wires_of(parcel->axis)->poll();
            wires_of(parcel->axis)->settle();
            TRY(parcel->axis->ops->device->status());
            TRY(parcel_move(parcel));
            continue;
        }
        MPI_TRY(MPI_Waitall(parcel->requests, parcel->request, MPI_STATUSES_IGNORE));
        return deliver(parcel);
    }
    return 0;
}

int parcel_end(struct parcel *parcel) {
    TRY(parcel_await(parcel));
    struct axis *axis = parcel->axis;
    if (parcel->state == PARCEL_WIRED) wires_of(axis)->join(axis->wire, parcel->ticket);
    if (parcel->state == PARCEL_THERE && parcel->staging && incoming(parcel)) parcel->staging->device->join();
    parcel->state = PARCEL_DONE;
    return 0;
}
