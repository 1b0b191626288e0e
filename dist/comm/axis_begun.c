/* A sum's two exchanges over MPI that does not wait, or over the axis's device communicator. While one sum's
 * terms travel, the sums before it may still be travelling to all. */
#include "dist/comm/axis_begun.h"
#include "dist/comm/axis_cover.h"
#include "dist/comm/axis_move.h"
#include "dist/mpi/activity.h"
#include "dist/mpi/mpi_error.h"

#include <stdlib.h>

/* One exchange of a sum. The lists are this one's, since MPI reads them until it is done. */
struct exchange {
    bool under_way;
    real *x;         /* the caller's */
    long count;      /* of x */
    uint16_t *codes; /* [count] what is gathered in bf16; else NULL */
    int *list;       /* [4, size] parts as MPI has them */
    int ticket;      /* on a device communicator */
    MPI_Request request;
};

struct axis_begun {
    struct exchange terms, sums;
};

/* First element of a rank's part. */
static long first(const struct axis *axis, long count, int rank) {
    return axis_first_of(count, rank, axis->size);
}

static long part(const struct axis *axis, long count, int rank) {
    return first(axis, count, rank + 1) - first(axis, count, rank);
}

/* The largest part of any rank: what each has room for. */
static long widest(const struct axis *axis, long count) {
    return (count + axis->size - 1) / axis->size;
}

/* In bf16 the axis's scratch has what comes in of the terms, what goes out, and what is gathered. */
static uint16_t *codes_of(const struct axis *axis, int place, long count) {
    return (uint16_t *)axis->pieces + place * axis->size * widest(axis, count);
}

long axis_begun_max(const struct axis *axis) {
    long codes = axis->pieces_count * (long)(sizeof(real) / sizeof(uint16_t));
    return (axis->wire == WIRE_BF16 ? codes / 3 : axis->pieces_count) / axis->size * axis->size;
}

static struct axis_begun *make(struct axis *axis) {
    struct axis_begun *begun = calloc(1, sizeof *begun);
    int *list = calloc(8 * (size_t)axis->size, sizeof *list);
    axis->begun = begun;
    if (begun && list) {
        begun->terms.list = list, begun->sums.list = list + 4 * axis->size;
        return begun;
    }
    free(list);
    axis_begun_free(axis);
    axis->status = gdn_fail(GDN_INTERNAL, "out of memory for sums over the %s axis", axis->name);
    return NULL;
}

void axis_begun_free(struct axis *axis) {
    if (axis->begun) free(axis->begun->terms.list);
    free(axis->begun);
    axis->begun = NULL;
}

/* One of the exchange's lists, from one of the axis's. */
static const int *list(const struct axis *axis, struct exchange *e, int number, const long *values) {
    int *out = e->list + number * axis->size;
    for (int r = 0; r < axis->size; r++) out[r] = (int)values[r];
    return out;
}

/* ------------------------------------------------------------------------------------------- terms */

static int start_terms(struct axis *axis, struct exchange *e, const void *out, void *in) {
    axis_find_pieces(axis, e->count, 1, 0, e->count);
    axis_expect_own(axis);
    if (axis->device_comm) {
        e->ticket = axis_begin_device_parts(axis, out, in, axis->wire);
        return 0;
    }
    const int *count = list(axis, e, 0, axis->count), *at = list(axis, e, 1, axis->at),
              *received = list(axis, e, 2, axis->received),
              *received_at = list(axis, e, 3, axis->received_at);
    MPI_TRY(MPI_Ialltoallv(out, count, at, wire_type(axis->wire), in, received, received_at,
                           wire_type(axis->wire), axis->comm, &e->request));
    return 0;
}

static int begin_terms(struct axis *axis, struct exchange *e) {
    e->under_way = true;
    if (axis->wire != WIRE_BF16) return start_terms(axis, e, e->x, axis->pieces);
    uint16_t *in = codes_of(axis, 0, e->count), *out = codes_of(axis, 1, e->count);
    axis->ops->to_bf16(e->count, e->x, out);
    return start_terms(axis, e, out, in);
}

/* Waits for it; a device's queue does, not the host. */
static int arrive(struct axis *axis, struct exchange *e) {
    e->under_way = false;
    if (axis->device_comm)
        axis->ops->device->comm->join(axis->device_comm, e->ticket);
    else
        MPI_TRY(MPI_Wait(&e->request, MPI_STATUS_IGNORE));
    return 0;
}

/* The own part becomes the sum of what came in. */
static int end_terms(struct axis *axis, struct exchange *e) {
    TRY(arrive(axis, e));
    long mine = part(axis, e->count, axis->index);
    real *sum = e->x + first(axis, e->count, axis->index);
    if (axis->wire == WIRE_BF16)
        axis->ops->add_parts_bf16(mine, axis->size, codes_of(axis, 0, e->count), sum);
    else
        axis->ops->add_parts(mine, axis->size, axis->pieces, sum);
    return 0;
}

/* -------------------------------------------------------------------------------------------- sums */

static int start_sums(struct axis *axis, struct exchange *e, void *x) {
    axis_find_pieces(axis, e->count, 1, 0, e->count);
    if (axis->device_comm) {
        e->ticket = axis_begin_device_rows(axis, x, axis->wire);
        return 0;
    }
    const int *count = list(axis, e, 0, axis->count), *at = list(axis, e, 1, axis->at);
    MPI_TRY(MPI_Iallgatherv(MPI_IN_PLACE, 0, wire_type(axis->wire), x, count, at, wire_type(axis->wire),
                            axis->comm, &e->request));
    return 0;
}

static int begin_sums(struct axis *axis, struct exchange *e) {
    e->under_way = true;
    e->codes = NULL;
    if (axis->wire != WIRE_BF16) return start_sums(axis, e, e->x);
    long at = first(axis, e->count, axis->index);
    e->codes = codes_of(axis, 2, e->count);
    axis->ops->to_bf16(part(axis, e->count, axis->index), e->x + at, e->codes + at);
    return start_sums(axis, e, e->codes);
}

static int end_sums(struct axis *axis, struct exchange *e) {
    if (!e->under_way) return 0;
    TRY(arrive(axis, e));
    if (e->codes) axis->ops->from_bf16(1, e->count, e->codes, e->x, e->count);
    return 0;
}

/* --------------------------------------------------------------------------------------- the calls */

/* The sum whose terms travel goes on to all. */
static int step(struct axis *axis, struct axis_begun *begun) {
    if (!begun->terms.under_way) return 0;
    TRY(end_terms(axis, &begun->terms));
    TRY(end_sums(axis, &begun->sums));
    begun->sums.x = begun->terms.x, begun->sums.count = begun->terms.count;
    return begin_sums(axis, &begun->sums);
}

static int begin(struct axis *axis, real *x, long count) {
    struct axis_begun *begun = axis->begun;
    if (axis->staging && !axis->device_comm)
        return gdn_fail(GDN_INTERNAL, "sums through host memory cannot be begun");
    if (count > axis_begun_max(axis))
        return gdn_fail(GDN_INTERNAL,
                        "a sum of %ld elements is begun over the %s axis, which has room for %ld", count,
                        axis->name, axis_begun_max(axis));
    TRY(step(axis, begun));
    begun->terms.x = x, begun->terms.count = count;
    long mine = part(axis, count, axis->index);
    axis->bytes += (count - mine + (axis->size - 1) * mine) * (int64_t)wire_bytes(axis->wire);
    return begin_terms(axis, &begun->terms);
}

static int end(struct axis *axis, struct axis_begun *begun) {
    TRY(step(axis, begun));
    return end_sums(axis, &begun->sums);
}

static void begin_planned(struct axis *axis, long count) {
    int64_t bytes = axis_formula_sum(axis->size, axis->index, count) / (int64_t)sizeof(real) *
                    (int64_t)wire_bytes(axis->wire);
    axis->bytes += bytes;
    axis_cover_end(axis); /* of the sum before */
    axis_cover_begin(axis, bytes);
}

void axis_sum_begin(struct axis *axis, real *x, long count) {
    if (axis->size == 1 || axis->status) return;
    axis->calls++;
    axis->begun_now = true;
    if (axis->comm == MPI_COMM_NULL) {
        begin_planned(axis, count);
        return;
    }
    if (!axis->begun && !make(axis)) return;
    axis->seconds -= MPI_Wtime();
    activity_enter(axis->name, "sum that travels beside a product", count, -1);
    axis->status = begin(axis, x, count);
    activity_leave();
    axis->seconds += MPI_Wtime();
}

void axis_sum_end(struct axis *axis) {
    if (axis->size == 1 || axis->status) return;
    axis->begun_now = false;
    if (axis->comm == MPI_COMM_NULL) {
        axis_cover_end(axis);
        return;
    }
    if (!axis->begun) return;
    axis->seconds -= MPI_Wtime();
    activity_enter(axis->name, "end of sums that travel beside a product", -1, -1);
    axis->status = end(axis, axis->begun);
    activity_leave();
    axis->seconds += MPI_Wtime();
    if (!axis->status) axis->status = axis->ops->device->status();
}
