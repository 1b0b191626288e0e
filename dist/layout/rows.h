/* Tensors between memory and their logical order on disk: row-major [shape[0], shape[1]], of which a rank's
 * memory holds a part, the other way round where row->transposed. Private to dist/.
 *
 * What a rank writes or reads at once is a run: consecutive elements of its part, as in memory (shard.h). On
 * disk that is at most three rectangles: the rest of a memory line, whole lines, the beginning of one. */
#ifndef GDN_ROWS_H
#define GDN_ROWS_H

#include "dist/layout/table.h"

struct rectangle {
    long at[2], size[2]; /* place and size in the global tensor */
    long memory;         /* index of its first element in the run's memory */
    long line;           /* elements between memory lines: rows of the tensor, columns where transposed */
    bool transposed;
};

/* Cuts the run of `count` elements from `first` on, of the rank's part of `row`, into rectangles; returns how
 * many. Not collective. */
int rows_cut(const struct row *row, long first, long count, struct rectangle out[3]);

/* Copies rows [first, first + n) of a rectangle, counted from its own first one, from the run's `memory` to
 * `buffer` [n, size[1]], and back. */
void rows_pack(const struct rectangle *rectangle, const real *memory, long first, long n, real *buffer);
void rows_unpack(const struct rectangle *rectangle, const real *buffer, long first, long n, real *memory);

/* The dataset of a tensor: "group/layers/3/…" for "layers.3.…". */
enum { ROWS_NAME = 128 };
void rows_dataset_name(const struct row *row, const char *group, char name[ROWS_NAME]);

#endif
