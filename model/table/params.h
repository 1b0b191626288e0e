/* The parameters: fills the parameter table (dist/layout/table.h) for a model and draws initial weights. */
#ifndef GDN_TABLE_PARAMS_H
#define GDN_TABLE_PARAMS_H

#include <stdint.h>

#include "dist/layout/layout.h"
#include "dist/layout/table.h"
#include "model/params/config.h"

/* Builds a rank's table: names and shapes of model.md, 8; the rank's parts of them by `layout` (NULL: all of
 * everything); memory order such that tensors that one GEMM reads together (q, k, v; gate, up; each part of a
 * layer's connections) are neighbours. Not collective. Free with params_free. */
int params_create(const struct model_config *model, const struct layout *layout, struct table *out);
void params_free(struct table *table);

/* Draws the initial weights of the rank's part of one row (model.md, 7) into `weight` [row->count]: a
 * function of (seed, tensor name, element index in the global tensor). */
void params_init(const struct row *row, uint64_t seed, real *weight);

/* The same of all rows, in any order, on all threads: weight [table->total]. */
void params_init_all(const struct table *table, uint64_t seed, real *weight);

#endif
