#include "dist/rows.h"

#include <stdio.h>
#include <string.h>

/* out [columns, rows] (line length out_line) = transpose of in [rows, columns] (line length in_line), in
 * square tiles, so that both sides are read and written in whole cache lines. */
static void transpose(const real *in, long in_line, long rows, long columns, real *out, long out_line) {
    enum { TILE = 32 };
#pragma omp parallel for collapse(2) schedule(static) if (rows * columns > 65536)
    for (long r0 = 0; r0 < rows; r0 += TILE)
        for (long c0 = 0; c0 < columns; c0 += TILE) {
            long r1 = r0 + TILE < rows ? r0 + TILE : rows, c1 = c0 + TILE < columns ? c0 + TILE : columns;
            for (long c = c0; c < c1; c++)
                for (long r = r0; r < r1; r++) out[c * out_line + r] = in[r * in_line + c];
        }
}

void rows_pack(const struct row *row, const real *memory, long first, long n, real *buffer) {
    long width = row->shape[1];
    if (row->transposed)
        transpose(memory + first, row->shape[0], width, n, buffer, width);
    else
        memcpy(buffer, memory + first * width, (size_t)(n * width) * sizeof(real));
}

void rows_unpack(const struct row *row, const real *buffer, long first, long n, real *memory) {
    long width = row->shape[1];
    if (row->transposed)
        transpose(buffer, width, n, width, memory + first, row->shape[0]);
    else
        memcpy(memory + first * width, buffer, (size_t)(n * width) * sizeof(real));
}

void rows_dataset_name(const struct row *row, const char *group, char name[ROWS_NAME]) {
    int at = snprintf(name, ROWS_NAME, "%s/", group);
    snprintf(name + at, ROWS_NAME - (size_t)at, "%s", row->name);
    for (char *c = name + at; *c; c++)
        if (*c == '.') *c = '/';
}
