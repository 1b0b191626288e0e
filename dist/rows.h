/* Tensors between memory and their logical order on disk: row-major [shape[0], shape[1]], which memory holds
 * the other way round where row->transposed. Private to dist/. */
#ifndef GDN_ROWS_H
#define GDN_ROWS_H

#include "dist/table.h"

/* Copies logical rows [first, first + n) of a tensor in `memory` [count] to `buffer` [n, shape[1]], and back.
 */
void rows_pack(const struct row *row, const real *memory, long first, long n, real *buffer);
void rows_unpack(const struct row *row, const real *buffer, long first, long n, real *memory);

/* The dataset of a tensor: "group/layers/3/…" for "layers.3.…". */
enum { ROWS_NAME = 128 };
void rows_dataset_name(const struct row *row, const char *group, char name[ROWS_NAME]);

#endif
