#include "dist/comm/axis_move.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/mpi_pieces.h"
#include "dist/comm/async_op.h"

static const struct device *device_of(const struct axis *axis) {
    return axis->ops->device;
}

static size_t bytes_of(long count) {
    return (size_t)count * sizeof(real);
}

/* The i-th element. */
static const void *at(const void *x, long i, enum wire wire) {
    return (const char *)x + (size_t)i * wire_bytes(wire);
}

static void *to(void *x, long i, enum wire wire) {
    return (char *)x + (size_t)i * wire_bytes(wire);
}

static size_t length_of(long count, enum wire wire) {
    return (size_t)count * wire_bytes(wire);
}

void axis_find_pieces(struct axis *axis, long rows, long width, long from, long max) {
    for (int r = 0; r < axis->size; r++) {
        long first = axis_first_of(rows, r, axis->size), end = axis_first_of(rows, r + 1, axis->size);
        long n = (end - first) * width - from;
        axis->count[r] = n < 0 ? 0 : n < max ? n : max;
        axis->at[r] = axis->count[r] ? first * width + from : 0;
    }
}

void axis_expect_own(struct axis *axis) {
    const long mine = axis->count[axis->index];
    for (int r = 0; r < axis->size; r++) axis->received[r] = mine, axis->received_at[r] = r * mine;
}

int axis_before_wait(const struct axis *axis) {
    const struct device_comm_ops *comms = device_of(axis)->comm;
    if (axis->device_comm) {
        comms->rest();
        comms->poll();
    }
    TRY(async_ops_start(axis->staging, true));
    return device_of(axis)->status();
}

/* ------------------------------------------------------------------------------------ through host memory */

/* Host memory for what goes out and what comes in; both NULL, with a failure, without memory. */
struct stopover {
    void *out, *in;
};

static int take(struct axis *axis, size_t out, size_t in, struct stopover *s) {
    s->in = staging_take(axis->staging, in);
    s->out = s->in && out ? staging_take(axis->staging, out) : s->in;
    return s->in && s->out ? 0 : GDN_INTERNAL;
}

/* Fetches count[r] elements from x + at[r] for each r, one after the other; `at` becomes where they lie on
 * the host. Waits until they and whatever was to go to MPI before them have arrived. */
static int fetch_parts(struct axis *axis, const void *x, void *host, enum wire wire) {
    long place = 0;
    for (int r = 0; r < axis->size; r++) {
        axis->ticket[r] = device_of(axis)->fetch(to(host, place, wire), at(x, axis->at[r], wire),
                                                 length_of(axis->count[r], wire));
        axis->at[r] = place;
        place += axis->count[r];
    }
    for (int r = 0; r < axis->size; r++) device_of(axis)->await(axis->ticket[r]);
    return axis_before_wait(axis);
}

static int fetch_one(struct axis *axis, const void *x, size_t bytes, void *host) {
    device_of(axis)->await(device_of(axis)->fetch(host, x, bytes));
    return axis_before_wait(axis);
}

/* What has come in goes to x. */
static int deliver(struct axis *axis, struct stopover *s, void *x, size_t bytes) {
    int ticket = device_of(axis)->deliver(x, s->in, bytes);
    device_of(axis)->join();
    if (s->out != s->in) staging_give(axis->staging, s->out, -1);
    staging_give(axis->staging, s->in, ticket);
    return 0;
}

/* -------------------------------------------------------------------------------------------------- parts */

int axis_begin_device_parts(struct axis *axis, const void *x, void *in, enum wire wire) {
    const struct device_comm_ops *comms = device_of(axis)->comm;
    int me = axis->index;
    comms->begin(axis->device_comm, "a sum");
    for (int r = 0; r < axis->size; r++) {
        if (r == me) continue;
        if (axis->count[r])
            comms->send(axis->device_comm, at(x, axis->at[r], wire), length_of(axis->count[r], wire), r);
        if (axis->received[r])
            comms->receive(axis->device_comm, to(in, axis->received_at[r], wire),
                           length_of(axis->received[r], wire), r);
    }
    int ticket = comms->end(axis->device_comm);
    device_of(axis)->move(to(in, axis->received_at[me], wire), at(x, axis->at[me], wire),
                          length_of(axis->count[me], wire));
    return ticket;
}

static int device_parts(struct axis *axis, const void *x, void *in, enum wire wire) {
    int ticket = axis_begin_device_parts(axis, x, in, wire);
    device_of(axis)->comm->join(axis->device_comm, ticket);
    return 0;
}

/* Of `count` elements those from `done` on that go in one call. */
static int next_of(long count, long done) {
    const long left = count - done;
    return (int)(left < 0 ? 0 : left < mpi_piece_max ? left : mpi_piece_max);
}

/* The same for each rank in turn, which no displacement is too far for, nor a part too long. */
static int exchange_in_turn(struct axis *axis, const void *out, void *in, enum wire wire) {
    MPI_Datatype type = wire_type(wire);
    int size = axis->size;
    for (int step = 0; step < size; step++) {
        int target = (axis->index + step) % size, from = (axis->index + size - step) % size;
        for (long done = 0; done < axis->count[target] || done < axis->received[from]; done += mpi_piece_max) {
            int send = next_of(axis->count[target], done), receive = next_of(axis->received[from], done);
            MPI_TRY(MPI_Sendrecv(at(out, axis->at[target] + done, wire), send, type,
                                 send ? target : MPI_PROC_NULL, 0,
                                 to(in, axis->received_at[from] + done, wire), receive, type,
                                 receive ? from : MPI_PROC_NULL, 0, axis->comm, MPI_STATUS_IGNORE));
        }
    }
    return 0;
}

/* Where the parts of all ranks lie, which all ranks know alike: so they choose the same calls. */
static bool in_one_call(const struct axis *axis) {
    for (int r = 0; r < axis->size; r++)
        if (axis->at[r] + axis->count[r] > mpi_piece_max) return false;
    return true;
}

/* One of the axis's four lists as MPI has them. */
static const int *for_call(struct axis *axis, int list, const long *values) {
    int *out = axis->call + list * axis->size;
    for (int r = 0; r < axis->size; r++) out[r] = (int)values[r];
    return out;
}

static int exchange_parts(struct axis *axis, const void *out, void *in, enum wire wire) {
    if (!in_one_call(axis)) return exchange_in_turn(axis, out, in, wire);
    MPI_TRY(MPI_Alltoallv(out, for_call(axis, 0, axis->count), for_call(axis, 1, axis->at), wire_type(wire),
                          in, for_call(axis, 2, axis->received), for_call(axis, 3, axis->received_at),
                          wire_type(wire), axis->comm));
    return 0;
}

int axis_move_parts(struct axis *axis, const void *x, void *in, enum wire wire) {
    if (axis->device_comm) return device_parts(axis, x, in, wire);
    if (!axis->staging) return exchange_parts(axis, x, in, wire);
    struct stopover s;
    long out = 0, received = 0;
    for (int r = 0; r < axis->size; r++) out += axis->count[r], received += axis->received[r];
    TRY(take(axis, length_of(out, wire), length_of(received, wire), &s));
    TRY(fetch_parts(axis, x, s.out, wire));
    TRY(exchange_parts(axis, s.out, s.in, wire));
    return deliver(axis, &s, in, length_of(received, wire));
}

/* --------------------------------------------------------------------------------------------------- rows */

int axis_begin_device_rows(struct axis *axis, void *x, enum wire wire) {
    const struct device_comm_ops *comms = device_of(axis)->comm;
    int me = axis->index;
    comms->begin(axis->device_comm, "a gather");
    for (int r = 0; r < axis->size; r++) {
        if (r == me) continue;
        if (axis->count[me])
            comms->send(axis->device_comm, at(x, axis->at[me], wire), length_of(axis->count[me], wire), r);
        if (axis->count[r])
            comms->receive(axis->device_comm, to(x, axis->at[r], wire), length_of(axis->count[r], wire), r);
    }
    return comms->end(axis->device_comm);
}

static int device_rows(struct axis *axis, void *x, enum wire wire) {
    int ticket = axis_begin_device_rows(axis, x, wire);
    device_of(axis)->comm->join(axis->device_comm, ticket);
    return 0;
}

static int gather_rows(struct axis *axis, void *x, enum wire wire) {
    MPI_Datatype type = wire_type(wire);
    if (!in_one_call(axis)) return mpi_gather_pieces(x, axis->at, axis->count, type, axis->comm);
    MPI_TRY(MPI_Allgatherv(MPI_IN_PLACE, 0, type, x, for_call(axis, 0, axis->count),
                           for_call(axis, 1, axis->at), type, axis->comm));
    return 0;
}

int axis_move_rows(struct axis *axis, void *x, long total, enum wire wire) {
    if (axis->device_comm) return device_rows(axis, x, wire);
    if (!axis->staging) return gather_rows(axis, x, wire);
    struct stopover s;
    int me = axis->index;
    TRY(take(axis, 0, length_of(total, wire), &s));
    TRY(fetch_one(axis, at(x, axis->at[me], wire), length_of(axis->count[me], wire),
                  to(s.in, axis->at[me], wire)));
    TRY(gather_rows(axis, s.in, wire));
    return deliver(axis, &s, x, length_of(total, wire));
}

/* ------------------------------------------------------------------------------------------------ columns */

/* Everybody's rows, as many at a time as there is scratch for, which then go to their columns. */
static int device_columns(struct axis *axis, const real *x, long rows, long width, real *out) {
    const struct device_comm_ops *comms = device_of(axis)->comm;
    int size = axis->size, me = axis->index;
    long max = axis->pieces_count / (size * width);
    if (!max)
        return gdn_fail(GDN_INTERNAL,
                        "rows of %ld columns are gathered over the %s axis, but axis_reserve was "
                        "asked for fewer",
                        size * width, axis->name);
    for (long row = 0; row < rows; row += max) {
        long n = rows - row < max ? rows - row : max;
        size_t bytes = bytes_of(n * width);
        device_of(axis)->move(axis->pieces + me * n * width, x + row * width, bytes);
        comms->begin(axis->device_comm, "a gather of columns");
        comms->gather(axis->device_comm, axis->pieces, bytes);
        comms->join(axis->device_comm, comms->end(axis->device_comm));
        for (int r = 0; r < size; r++)
            axis->ops->copy_columns(n, width, axis->pieces + r * n * width, width,
                                    out + row * size * width + r * width, size * width);
    }
    return 0;
}

/* MPI puts each rank's columns in their place: `column` is [rows, width] out of lines of size·width. */
static int gather_lines(struct axis *axis, const real *x, long rows, long width, real *out) {
    MPI_Datatype lines, column;
    MPI_TRY(MPI_Type_vector((int)rows, (int)width, (int)(axis->size * width), REAL_TYPE, &lines));
    int code = MPI_Type_create_resized(lines, 0, (MPI_Aint)bytes_of(width), &column);
    MPI_Type_free(&lines);
    MPI_TRY(code);
    code = MPI_Type_commit(&column);
    if (code == MPI_SUCCESS)
        code = MPI_Allgather(x, (int)(rows * width), REAL_TYPE, out, 1, column, axis->comm);
    MPI_Type_free(&column);
    MPI_TRY(code);
    return 0;
}

static int gather_columns(struct axis *axis, const real *x, long rows, long width, real *out) {
    long line = axis->size * width, max = mpi_piece_max > line ? mpi_piece_max / line : 1;
    for (long row = 0; row < rows; row += max) {
        long n = rows - row < max ? rows - row : max;
        TRY(gather_lines(axis, x + row * width, n, width, out + row * line));
    }
    return 0;
}

int axis_move_columns(struct axis *axis, const real *x, long rows, long width, real *out) {
    if (axis->device_comm) return device_columns(axis, x, rows, width, out);
    if (!axis->staging) return gather_columns(axis, x, rows, width, out);
    struct stopover s;
    size_t bytes = bytes_of(rows * width);
    TRY(take(axis, bytes, bytes * (size_t)axis->size, &s));
    TRY(fetch_one(axis, x, bytes, s.out));
    TRY(gather_columns(axis, s.out, rows, width, s.in));
    return deliver(axis, &s, out, bytes * (size_t)axis->size);
}

/* ------------------------------------------------------------------------------------------------ maximum */

int axis_move_max(struct axis *axis, real *x, long count) {
    const int ranks = axis->size;
    axis_find_pieces(axis, ranks, count, 0, count);
    device_of(axis)->move(axis->pieces + axis->index * count, x, bytes_of(count));
    TRY(axis_move_rows(axis, axis->pieces, ranks * count, WIRE_STORED));
    axis->ops->max_parts(count, ranks, axis->pieces, x);
    return 0;
}
