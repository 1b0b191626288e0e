/* Which part of the model each rank has: a configuration's mesh as layouts (dist/layout/layout.h). */
#ifndef GDN_PLACEMENT_H
#define GDN_PLACEMENT_H

#include "dist/layout/layout.h"
#include "train/config/config.h"

/* The layout of one rank of a mesh with so many copies of each part; stages are cut by the arithmetic of
 * their layers, with all distances active. Not collective: every rank computes the same. Free with
 * placement_free. GDN_INPUT where the layers are fewer than the stages. */
int placement_create(const struct config *config, int copies, int tensor_index, int pipeline_index,
                     struct layout *out);
void placement_free(struct layout *layout);

#endif
