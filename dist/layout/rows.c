#include "dist/layout/rows.h"

#include <stdio.h>
#include <string.h>

int rows_cut(const struct row *row, long first, long count, struct rectangle out[3]) {
    long line = row->transposed ? row->local[0] : row->local[1];
    int along = row->transposed ? 0 : 1, across = 1 - along, n = 0; /* the dimension along a memory line */
    for (long done = 0; done < count; n++) {
        long lead = (first + done) / line, within = (first + done) % line, left = count - done;
        bool whole = within == 0 && left >= line;
        long lines = whole ? left / line : 1;
        long length = whole ? line : left < line - within ? left : line - within;
        struct rectangle *r = &out[n];
        *r = (struct rectangle){.memory = done, .line = line, .transposed = row->transposed};
        r->at[across] = row->start[across] + lead, r->size[across] = lines;
        r->at[along] = row->start[along] + within, r->size[along] = length;
        done += lines * length;
    }
    return n;
}

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

/* Copies `rows` lines of `width` elements. */
static void copy(const real *in, long in_line, long rows, long width, real *out, long out_line) {
    if (in_line == width && out_line == width) width *= rows, rows = 1;
    for (long r = 0; r < rows; r++)
        memcpy(out + r * out_line, in + r * in_line, (size_t)width * sizeof(real));
}

void rows_pack(const struct rectangle *r, const real *memory, long first, long n, real *buffer) {
    long width = r->size[1];
    memory += r->memory;
    if (r->transposed)
        transpose(memory + first, r->line, width, n, buffer, width);
    else
        copy(memory + first * r->line, r->line, n, width, buffer, width);
}

void rows_unpack(const struct rectangle *r, const real *buffer, long first, long n, real *memory) {
    long width = r->size[1];
    memory += r->memory;
    if (r->transposed)
        transpose(buffer, width, n, width, memory + first, r->line);
    else
        copy(buffer, width, n, width, memory + first * r->line, r->line);
}

void rows_dataset_name(const struct row *row, const char *group, char name[ROWS_NAME]) {
    int at = snprintf(name, ROWS_NAME, "%s/", group);
    snprintf(name + at, ROWS_NAME - (size_t)at, "%s", row->name);
    for (char *c = name + at; *c; c++)
        if (*c == '.') *c = '/';
}
