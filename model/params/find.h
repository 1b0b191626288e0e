/* What is asked of a parameter table that is there (model/table/params.h makes it). */
#ifndef GDN_PARAMS_FIND_H
#define GDN_PARAMS_FIND_H

#include "dist/layout/edge.h"
#include "dist/layout/table.h"
#include "model/params/config.h"

/* The row of a name, or NULL. */
const struct row *params_find(const struct table *table, const char *name);

/* Is this tensor trained while these edges are active (model.md, 6)? */
bool params_active(const struct row *row, const struct edge_set *active);

#endif
