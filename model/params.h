/* The parameters: fills the parameter table (dist/table.h) for a model and draws initial weights. */
#ifndef GDN_PARAMS_H
#define GDN_PARAMS_H

#include <stdint.h>

#include "dist/table.h"
#include "model/config.h"

/* Builds the table: names and shapes of model.md, 8; memory order such that tensors that one GEMM reads
 * together (q, k, v; gate, up; each part of a layer's connections) are neighbours. Not collective. Free
 * with params_free. */
int params_create(const struct model_config *model, struct table *out);
void params_free(struct table *table);

/* The row of a name, or NULL. */
const struct row *params_find(const struct table *table, const char *name);

/* Draws the initial weights of one row (model.md, 7): a function of (seed, tensor name, element index). */
void params_init(const struct model_config *model, const struct row *row, uint64_t seed, real *weight);

/* Is this tensor trained while the first `active` of the distances are (model.md, 6)? */
bool params_active(const struct model_config *model, const struct row *row, int active);

#endif
