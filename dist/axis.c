/* Sums and gathers over one axis of the mesh. MPI_Allreduce does not promise an order, and Open MPI's changes
 * with the count; exchanging the terms and adding here makes a sum a function of its terms and their ranks
 * alone. */
#include "dist/axis.h"
#include "dist/mpi_check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const int64_t REAL_BYTES = sizeof(real), DOUBLE_BYTES = sizeof(double);

int axis_create(const char *name, MPI_Comm world, int color, int index, int size, struct axis *out) {
    *out = (struct axis){.name = name, .index = index, .size = size, .comm = MPI_COMM_NULL};
    MPI_TRY(MPI_Comm_split(world, color, index, &out->comm));
    MPI_TRY(MPI_Comm_set_errhandler(out->comm, MPI_ERRORS_RETURN));
    size_t ranks = (size_t)size;
    out->gathered = malloc(ranks * AXIS_DOUBLES * sizeof *out->gathered);
    out->count = calloc(4 * ranks, sizeof(int));
    if (!out->gathered || !out->count) {
        axis_free(out);
        return gdn_fail(GDN_INTERNAL, "out of memory: the buffers of a mesh of %d %s ranks cannot be had",
                        size, name);
    }
    out->at = out->count + ranks;
    out->received = out->at + ranks;
    out->received_at = out->received + ranks;
    return 0;
}

struct axis axis_alone(const char *name) {
    return (struct axis){.name = name, .size = 1, .comm = MPI_COMM_NULL};
}

struct axis axis_planned(const char *name, int size, int index) {
    return (struct axis){.name = name, .size = size, .index = index, .comm = MPI_COMM_NULL};
}

void axis_free(struct axis *axis) {
    if (axis->comm != MPI_COMM_NULL) MPI_Comm_free(&axis->comm);
    free(axis->gathered);
    free(axis->count);
    free(axis->pieces);
    *axis = (struct axis){.comm = MPI_COMM_NULL};
}

static long least(long a, long b) {
    return a < b ? a : b;
}

/* Elements of one rank's part that a sum of `count` exchanges in one go: its part, or less where that is more
 * than the scratch may hold. The same on all ranks. */
static long block_part(int size, long count) {
    long part = (least(count, AXIS_BLOCK) + size - 1) / size;
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
    free(axis->pieces);
    axis->pieces = malloc(bytes);
    axis->pieces_count = axis->pieces ? pieces : 0;
    if (axis->pieces) return 0;
    return gdn_fail(GDN_INTERNAL, "out of memory: %.1f MiB for sums over the %s axis cannot be had",
                    (double)bytes / 1048576, axis->name);
}

static long first_of(long rows, int index, int size) {
    return rows * index / size;
}

static long part_of(long rows, int index, int size) {
    return first_of(rows, index + 1, size) - first_of(rows, index, size);
}

long axis_first_row(const struct axis *axis, long rows, int index) {
    return first_of(rows, index, axis->size);
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

int64_t axis_formula_max(int size, long count) {
    return (size - 1) * count * REAL_BYTES;
}

int64_t axis_formula_sum_doubles(int size, long count) {
    return (size - 1) * count * DOUBLE_BYTES;
}

int64_t axis_formula_gather_doubles(int size, long count) {
    return (size - 1) * count * DOUBLE_BYTES;
}

/* Whether a call has anything to do but to count `planned` bytes; keeps time until leave(). */
static bool enter(struct axis *axis, int64_t planned) {
    if (axis->size == 1 || axis->status) return false;
    axis->calls++;
    if (axis->comm == MPI_COMM_NULL) {
        axis->bytes += planned;
        return false;
    }
    axis->seconds -= MPI_Wtime();
    return true;
}

static void leave(struct axis *axis, int code, const char *call) {
    axis->seconds += MPI_Wtime();
    if (code != MPI_SUCCESS) axis->status = mpi_failed(code, call);
}

/* MPI counts in int. */
static bool too_long(struct axis *axis, long count) {
    if (count <= INT_MAX) return false;
    axis->status = gdn_fail(GDN_INTERNAL, "%ld elements in one call over the %s axis, but %d are the most",
                            count, axis->name, INT_MAX);
    return true;
}

static bool too_small(struct axis *axis, long count, long pieces) {
    if (pieces <= axis->pieces_count) return false;
    axis->status = gdn_fail(GDN_INTERNAL,
                            "%ld elements are summed over the %s axis, but axis_reserve was asked for fewer",
                            count, axis->name);
    return true;
}

/* Hands to each rank the elements [from, from + most) of its part of the rows, as far as it has so many, and
 * sums what comes for this rank's. */
static int sum_piece(struct axis *axis, real *x, long rows, long width, long from, long most) {
    int ranks = axis->size, me = axis->index;
    for (int r = 0; r < ranks; r++) {
        long part = part_of(rows, r, ranks) * width, n = least(part - from, most);
        axis->at[r] = (int)(first_of(rows, r, ranks) * width + from);
        axis->count[r] = n > 0 ? (int)n : 0;
        if (!axis->count[r]) axis->at[r] = 0;
    }
    int mine = axis->count[me];
    for (int r = 0; r < ranks; r++) axis->received[r] = mine, axis->received_at[r] = r * mine;
    int code = MPI_Alltoallv(x, axis->count, axis->at, REAL_TYPE, axis->pieces, axis->received,
                             axis->received_at, REAL_TYPE, axis->comm);
    if (code != MPI_SUCCESS) return code;
    for (int r = 0; r < ranks; r++)
        if (r != me) axis->bytes += axis->count[r] * REAL_BYTES;
    axis_add_parts(x + axis->at[me], axis->pieces, ranks, mine);
    return MPI_SUCCESS;
}

static int sum_rows(struct axis *axis, real *x, long rows, long width) {
    long count = rows * width, most = block_part(axis->size, count);
    if (too_long(axis, count) || too_small(axis, count, most * axis->size)) return MPI_SUCCESS;
    long greatest = (rows + axis->size - 1) / axis->size * width; /* part */
    int code = MPI_SUCCESS;
    for (long from = 0; from < greatest && code == MPI_SUCCESS; from += most)
        code = sum_piece(axis, x, rows, width, from, most);
    return code;
}

static int gather_rows(struct axis *axis, real *x, long rows, long width) {
    if (too_long(axis, rows * width)) return MPI_SUCCESS;
    for (int r = 0; r < axis->size; r++) {
        axis->at[r] = (int)(first_of(rows, r, axis->size) * width);
        axis->count[r] = (int)(part_of(rows, r, axis->size) * width);
    }
    axis->bytes += axis->count[axis->index] * REAL_BYTES * (axis->size - 1);
    return MPI_Allgatherv(MPI_IN_PLACE, 0, REAL_TYPE, x, axis->count, axis->at, REAL_TYPE, axis->comm);
}

void axis_add_parts(real *sum, const real *pieces, int ranks, long count) {
#pragma omp parallel for simd schedule(static) if (count > 16384)
    for (long i = 0; i < count; i++) {
        real s = pieces[i];
        for (int r = 1; r < ranks; r++) s += pieces[r * count + i];
        sum[i] = s;
    }
}

void axis_sum(struct axis *axis, real *x, long count) {
    if (!enter(axis, axis_formula_sum(axis->size, axis->index, count))) return;
    int code = sum_rows(axis, x, count, 1);
    if (code == MPI_SUCCESS && !axis->status) code = gather_rows(axis, x, count, 1);
    leave(axis, code, "MPI_Alltoallv or MPI_Allgatherv");
}

void axis_sum_rows(struct axis *axis, real *x, long rows, long width) {
    if (!enter(axis, axis_formula_sum_rows(axis->size, axis->index, rows, width))) return;
    leave(axis, sum_rows(axis, x, rows, width), "MPI_Alltoallv");
}

void axis_gather_rows(struct axis *axis, real *x, long rows, long width) {
    if (!enter(axis, axis_formula_gather_rows(axis->size, axis->index, rows, width))) return;
    leave(axis, gather_rows(axis, x, rows, width), "MPI_Allgatherv");
}

/* MPI puts each rank's columns in their place: `column` is [rows, width] out of lines of size·width. */
static int gather_columns(struct axis *axis, const real *x, int rows, int width, real *out) {
    MPI_Datatype lines, column;
    int code = MPI_Type_vector(rows, width, axis->size * width, REAL_TYPE, &lines);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Type_create_resized(lines, 0, (MPI_Aint)(width * REAL_BYTES), &column);
    MPI_Type_free(&lines);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Type_commit(&column);
    if (code == MPI_SUCCESS) code = MPI_Allgather(x, rows * width, REAL_TYPE, out, 1, column, axis->comm);
    MPI_Type_free(&column);
    axis->bytes += (int64_t)rows * width * REAL_BYTES * (axis->size - 1);
    return code;
}

void axis_gather_columns(struct axis *axis, const real *x, long rows, long width, real *out) {
    if (axis->size == 1 && x != out) memcpy(out, x, (size_t)(rows * width) * sizeof *out);
    if (!enter(axis, axis_formula_gather_columns(axis->size, rows, width))) return;
    int code = MPI_SUCCESS;
    if (!too_long(axis, rows * width * axis->size) && rows && width)
        code = gather_columns(axis, x, (int)rows, (int)width, out);
    leave(axis, code, "MPI_Allgather of columns");
}

/* Elementwise; NaN where one is NaN, so that all ranks see it. */
static void greatest_of(real *x, const real *pieces, int ranks, long count) {
    for (long i = 0; i < count; i++) {
        real most = pieces[i];
        for (int r = 1; r < ranks; r++) {
            real other = pieces[r * count + i];
            if (other > most || other != other) most = other;
        }
        x[i] = most;
    }
}

void axis_max(struct axis *axis, real *x, long count) {
    if (!enter(axis, axis_formula_max(axis->size, count))) return;
    int code = MPI_SUCCESS, ranks = axis->size;
    long most = block_part(ranks, count * ranks);
    if (too_small(axis, count * ranks, most * ranks)) count = 0;
    for (long at = 0; at < count && code == MPI_SUCCESS; at += most) {
        long n = least(count - at, most);
        code = MPI_Allgather(x + at, (int)n, REAL_TYPE, axis->pieces, (int)n, REAL_TYPE, axis->comm);
        axis->bytes += n * REAL_BYTES * (ranks - 1);
        if (code == MPI_SUCCESS) greatest_of(x + at, axis->pieces, ranks, n);
    }
    leave(axis, code, "MPI_Allgather");
}

void axis_sum_doubles(struct axis *axis, double *values, int count) {
    if (!enter(axis, axis_formula_sum_doubles(axis->size, count))) return;
    int code = MPI_SUCCESS;
    for (int at = 0; at < count && code == MPI_SUCCESS; at += AXIS_DOUBLES) {
        int n = count - at < AXIS_DOUBLES ? count - at : AXIS_DOUBLES;
        code = MPI_Allgather(values + at, n, MPI_DOUBLE, axis->gathered, n, MPI_DOUBLE, axis->comm);
        if (code != MPI_SUCCESS) break;
        axis->bytes += n * DOUBLE_BYTES * (axis->size - 1);
        for (int i = 0; i < n; i++) {
            double sum = axis->gathered[i];
            for (int r = 1; r < axis->size; r++) sum += axis->gathered[r * n + i];
            values[at + i] = sum;
        }
    }
    leave(axis, code, "MPI_Allgather");
}

void axis_gather_doubles(struct axis *axis, const double *mine, long count, double *all) {
    if (axis->size == 1 && mine != all) memcpy(all, mine, (size_t)count * sizeof *all);
    if (!enter(axis, axis_formula_gather_doubles(axis->size, count))) return;
    int code = MPI_SUCCESS;
    if (!too_long(axis, count)) {
        code = MPI_Allgather(mine, (int)count, MPI_DOUBLE, all, (int)count, MPI_DOUBLE, axis->comm);
        axis->bytes += count * DOUBLE_BYTES * (axis->size - 1);
    }
    leave(axis, code, "MPI_Allgather of doubles");
}
