/* Sums and gathers over one axis of the mesh. MPI_Allreduce does not promise an order, and Open MPI's changes
 * with the count; exchanging the terms and adding here makes a sum a function of its terms and their ranks
 * alone. */
#include "dist/comm/axis_move.h"
#include "dist/comm/axis_narrow.h"
#include "dist/mpi/activity.h"
#include "dist/mpi/mpi_error.h"
#include "dist/mpi/mpi_pieces.h"

#include <string.h>

static const int64_t REAL_BYTES = sizeof(real), DOUBLE_BYTES = sizeof(double);

static const struct device *device_of(const struct axis *axis) {
    return axis->ops->device;
}

static long min(long a, long b) {
    return a < b ? a : b;
}

/* Elements of one rank's part that a sum of `count` exchanges in one go: its part, or less where that is more
 * than the scratch may hold. The same on all ranks. */
static long block_part(int size, long count) {
    long part = (min(count, AXIS_BLOCK) + size - 1) / size;
    return part ? part : 1;
}

int axis_reserve(struct axis *axis, long count) {
    long pieces = block_part(axis->size, count) * axis->size; /* every rank's version of one part */
    if (axis->size == 1 || pieces <= axis->pieces_count) return 0;
    if (axis->comm == MPI_COMM_NULL) { /* planned: how much it would be */
        axis->pieces_count = pieces;
        return 0;
    }
    size_t bytes = (size_t)pieces * sizeof(real);
    if (axis->pieces) device_of(axis)->release(axis->pieces);
    axis->pieces = device_of(axis)->reserve(bytes);
    axis->pieces_count = axis->pieces ? pieces : 0;
    if (axis->pieces) return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory: %.1f MiB for sums over the %s axis cannot be had",
                    (double)bytes / 1048576, axis->name);
}

static long part_of(long rows, int index, int size) {
    return axis_first_of(rows, index + 1, size) - axis_first_of(rows, index, size);
}

long axis_first_row(const struct axis *axis, long rows, int index) {
    return axis_first_of(rows, index, axis->size);
}

int64_t axis_formula_sum_rows(int size, int index, long rows, long width) {
    return (rows - part_of(rows, index, size)) * width * REAL_BYTES;
}

int64_t axis_formula_gather_rows(int size, int index, long rows, long width) {
    return (size - 1) * part_of(rows, index, size) * width * REAL_BYTES;
}

int64_t axis_formula_sum(int size, int index, long count) {
    return axis_formula_sum_rows(size, index, count, 1) + axis_formula_gather_rows(size, index, count, 1);
}

int64_t axis_formula_gather_columns(int size, long rows, long width) {
    return (size - 1) * rows * width * REAL_BYTES;
}

int64_t axis_formula_exchange(int size, long part) {
    return (size - 1) * part * REAL_BYTES;
}

int64_t axis_formula_max(int size, long count) {
    return (size - 1) * count * REAL_BYTES;
}

int64_t axis_formula_sum_doubles(int size, long count) {
    return (size - 1) * count * DOUBLE_BYTES;
}

int64_t axis_formula_gather_doubles(int size, long count) {
    return (size - 1) * count * DOUBLE_BYTES;
}

/* Whether a call has anything to do but to count `planned` bytes; keeps time and tells where it is until
 * leave(). */
static bool enter(struct axis *axis, int64_t planned, const char *call, long count) {
    if (axis->size == 1 || axis->status) return false;
    if (axis->begun_now) {
        axis->status = gdn_fail(GDN_INTERNAL, "a %s over the %s axis comes before the end of what has begun",
                                call, axis->name);
        return false;
    }
    axis->calls++;
    if (axis->comm == MPI_COMM_NULL) {
        axis->bytes += planned;
        return false;
    }
    axis->seconds -= MPI_Wtime();
    activity_enter(axis->name, call, count, -1);
    return true;
}

static void leave(struct axis *axis, int status) {
    activity_leave();
    axis->seconds += MPI_Wtime();
    if (!axis->status) axis->status = status;
    if (!axis->status) axis->status = device_of(axis)->status();
}

static bool too_small(struct axis *axis, long count, long pieces) {
    if (pieces <= axis->pieces_count) return false;
    axis->status = gdn_fail(GDN_INTERNAL,
                            "%ld elements are summed over the %s axis, but axis_reserve was asked for fewer",
                            count, axis->name);
    return true;
}

/* Hands to each rank the elements [from, from + max) of its part of the rows, as far as it has so many, and
 * sums what comes for this rank's. */
static int sum_piece(struct axis *axis, enum wire wire, real *x, long rows, long width, long from, long max) {
    int ranks = axis->size, me = axis->index;
    axis_find_pieces(axis, rows, width, from, max);
    axis_expect_own(axis);
    long mine = axis->count[me];
    real *sum = x + axis->at[me];
    for (int r = 0; r < ranks; r++)
        if (r != me) axis->bytes += axis->count[r] * (int64_t)wire_bytes(wire);
    if (wire == WIRE_BF16) return axis_sum_narrow(axis, x, max, sum);
    TRY(axis_move_parts(axis, x, axis->pieces, wire));
    axis->ops->add_parts(mine, ranks, axis->pieces, sum);
    return 0;
}

static int sum_rows(struct axis *axis, enum wire wire, real *x, long rows, long width) {
    long count = rows * width, max = block_part(axis->size, count);
    if (too_small(axis, count, max * axis->size)) return axis->status;
    long greatest = (rows + axis->size - 1) / axis->size * width; /* part */
    for (long from = 0; from < greatest; from += max) TRY(sum_piece(axis, wire, x, rows, width, from, max));
    return 0;
}

static int gather_rows(struct axis *axis, enum wire wire, real *x, long rows, long width) {
    if (wire == WIRE_BF16) return axis_gather_narrow_rows(axis, x, rows, width);
    axis_find_pieces(axis, rows, width, 0, rows * width);
    axis->bytes += axis->count[axis->index] * (int64_t)wire_bytes(wire) * (axis->size - 1);
    return axis_move_rows(axis, x, rows * width, wire);
}

static int64_t in_wire(enum wire wire, int64_t bytes) {
    return bytes / (int64_t)sizeof(real) * (int64_t)wire_bytes(wire);
}

static void sum_all(struct axis *axis, enum wire wire, real *x, long count) {
    if (!enter(axis, in_wire(wire, axis_formula_sum(axis->size, axis->index, count)), "sum", count)) return;
    int status = sum_rows(axis, wire, x, count, 1);
    leave(axis, status ? status : gather_rows(axis, wire, x, count, 1));
}

void axis_sum(struct axis *axis, real *x, long count) {
    sum_all(axis, axis->wire, x, count);
}

void axis_sum_exact(struct axis *axis, real *x, long count) {
    sum_all(axis, WIRE_STORED, x, count);
}

void axis_sum_rows(struct axis *axis, real *x, long rows, long width) {
    int64_t bytes = in_wire(axis->wire, axis_formula_sum_rows(axis->size, axis->index, rows, width));
    if (!enter(axis, bytes, "sum of rows", rows * width)) return;
    leave(axis, sum_rows(axis, axis->wire, x, rows, width));
}

void axis_gather_rows(struct axis *axis, real *x, long rows, long width) {
    int64_t bytes = in_wire(axis->wire, axis_formula_gather_rows(axis->size, axis->index, rows, width));
    if (!enter(axis, bytes, "gather of rows", rows * width)) return;
    leave(axis, gather_rows(axis, axis->wire, x, rows, width));
}

void axis_gather_columns(struct axis *axis, const real *x, long rows, long width, real *out) {
    if (axis->size == 1 && x != out) device_of(axis)->move(out, x, (size_t)(rows * width) * sizeof *out);
    int64_t bytes = in_wire(axis->wire, axis_formula_gather_columns(axis->size, rows, width));
    if (!enter(axis, bytes, "gather of columns", rows * width)) return;
    int status = 0;
    if (rows && width) {
        axis->bytes += bytes;
        status = axis->wire == WIRE_BF16 ? axis_gather_narrow_columns(axis, x, rows, width, out)
                                         : axis_move_columns(axis, x, rows, width, out);
    }
    leave(axis, status);
}

static int exchange(struct axis *axis, const real *x, long part, real *out) {
    for (int r = 0; r < axis->size; r++) axis->at[r] = r * part, axis->count[r] = part;
    axis_expect_own(axis);
    axis->bytes += axis_formula_exchange(axis->size, part);
    return axis_move_parts(axis, x, out, WIRE_STORED);
}

void axis_exchange(struct axis *axis, const real *x, long part, real *out) {
    if (axis->size == 1 && x != out) device_of(axis)->move(out, x, (size_t)part * sizeof *out);
    if (!enter(axis, axis_formula_exchange(axis->size, part), "all-to-all", part)) return;
    leave(axis, exchange(axis, x, part, out));
}

void axis_max(struct axis *axis, real *x, long count) {
    if (!enter(axis, axis_formula_max(axis->size, count), "maximum", count)) return;
    int status = 0, ranks = axis->size;
    long max = block_part(ranks, count * ranks);
    if (too_small(axis, count * ranks, max * ranks)) count = 0;
    for (long at = 0; at < count && !status; at += max) {
        long n = min(count - at, max);
        axis->bytes += n * REAL_BYTES * (ranks - 1);
        status = axis_move_max(axis, x + at, n);
    }
    leave(axis, status);
}

static int sum_doubles(struct axis *axis, double *values, int count) {
    TRY(axis_before_wait(axis));
    for (int at = 0; at < count; at += AXIS_DOUBLES) {
        int n = count - at < AXIS_DOUBLES ? count - at : AXIS_DOUBLES;
        MPI_TRY(MPI_Allgather(values + at, n, MPI_DOUBLE, axis->gathered, n, MPI_DOUBLE, axis->comm));
        axis->bytes += n * DOUBLE_BYTES * (axis->size - 1);
        for (int i = 0; i < n; i++) {
            double sum = axis->gathered[i];
            for (int r = 1; r < axis->size; r++) sum += axis->gathered[r * n + i];
            values[at + i] = sum;
        }
    }
    return 0;
}

void axis_sum_doubles(struct axis *axis, double *values, int count) {
    if (!enter(axis, axis_formula_sum_doubles(axis->size, count), "sum of doubles", count)) return;
    leave(axis, sum_doubles(axis, values, count));
}

static int gather_doubles(struct axis *axis, const double *mine, long count, double *all) {
    TRY(axis_before_wait(axis));
    axis->bytes += count * DOUBLE_BYTES * (axis->size - 1);
    if (axis->size * count <= mpi_piece_max) {
        MPI_TRY(MPI_Allgather(mine, (int)count, MPI_DOUBLE, all, (int)count, MPI_DOUBLE, axis->comm));
        return 0;
    }
    for (int r = 0; r < axis->size; r++) axis->at[r] = r * count, axis->count[r] = count;
    memmove(all + axis->at[axis->index], mine, (size_t)count * sizeof *all);
    return mpi_gather_pieces(all, axis->at, axis->count, MPI_DOUBLE, axis->comm);
}

void axis_gather_doubles(struct axis *axis, const double *mine, long count, double *all) {
    if (axis->size == 1 && mine != all) memcpy(all, mine, (size_t)count * sizeof *all);
    if (!enter(axis, axis_formula_gather_doubles(axis->size, count), "gather of doubles", count)) return;
    leave(axis, gather_doubles(axis, mine, count, all));
}
