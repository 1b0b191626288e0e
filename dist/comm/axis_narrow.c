#include "dist/comm/axis_narrow.h"
#include "dist/comm/axis_move.h"

/* What is received; what is handed over lies behind it. */
static uint16_t *scratch(const struct axis *axis) {
    return (uint16_t *)axis->pieces;
}

/* Codes that there is scratch for, the same on all ranks. */
static long room(const struct axis *axis) {
    return axis->pieces_count * (long)(sizeof(real) / sizeof(uint16_t));
}

static int too_wide(const struct axis *axis, long columns) {
    return gdn_fail(GDN_INTERNAL,
                    "rows of %ld columns are gathered over the %s axis, but axis_reserve was asked for fewer",
                    columns, axis->name);
}

int axis_sum_narrow(struct axis *axis, const real *x, long max, real *sum) {
    const struct ops *ops = axis->ops;
    uint16_t *in = scratch(axis), *out = in + max * axis->size;
    long mine = axis->count[axis->index], place = 0;
    for (int r = 0; r < axis->size; r++) {
        ops->to_bf16(axis->count[r], x + axis->at[r], out + place);
        axis->at[r] = place;
        place += axis->count[r];
    }
    TRY(axis_move_parts(axis, out, in, WIRE_BF16));
    ops->add_parts_bf16(mine, axis->size, in, sum);
    return 0;
}

static int gather_piece(struct axis *axis, real *x, long rows, long width, long from, long max) {
    const struct ops *ops = axis->ops;
    uint16_t *all = scratch(axis);
    int me = axis->index;
    long place = 0;
    axis_find_pieces(axis, rows, width, from, max);
    for (int r = 0; r < axis->size; r++) {
        axis->received_at[r] = axis->at[r]; /* where it goes */
        axis->at[r] = place;
        place += axis->count[r];
    }
    ops->to_bf16(axis->count[me], x + axis->received_at[me], all + axis->at[me]);
    axis->bytes += axis->count[me] * (int64_t)wire_bytes(WIRE_BF16) * (axis->size - 1);
    TRY(axis_move_rows(axis, all, place, WIRE_BF16));
    for (int r = 0; r < axis->size; r++)
        ops->from_bf16(1, axis->count[r], all + axis->at[r], x + axis->received_at[r], axis->count[r]);
    return 0;
}

int axis_gather_narrow_rows(struct axis *axis, real *x, long rows, long width) {
    long greatest = (rows + axis->size - 1) / axis->size * width, max = room(axis) / axis->size;
    if (!max) return too_wide(axis, width);
    for (long from = 0; from < greatest; from += max) TRY(gather_piece(axis, x, rows, width, from, max));
    return 0;
}

int axis_gather_narrow_columns(struct axis *axis, const real *x, long rows, long width, real *out) {
    const struct ops *ops = axis->ops;
    uint16_t *all = scratch(axis);
    long line = axis->size * width, max = room(axis) / line;
    if (!max) return too_wide(axis, line);
    for (long row = 0; row < rows; row += max) {
        long n = rows - row < max ? rows - row : max;
        for (int r = 0; r < axis->size; r++) axis->at[r] = r * n * width, axis->count[r] = n * width;
        ops->to_bf16(n * width, x + row * width, all + axis->at[axis->index]);
        TRY(axis_move_rows(axis, all, n * line, WIRE_BF16));
        for (int r = 0; r < axis->size; r++)
            ops->from_bf16(n, width, all + r * n * width, out + row * line + r * width, line);
    }
    return 0;
}
