/* The edge table: delta connections are a static list of edges between layers, known before training.
 * Activation lifetimes, progressive introduction and every later user (recomputation, pipeline transport,
 * pruning) read this table; none has a private copy of that knowledge (model.md, 2). */
#ifndef GDN_EDGES_H
#define GDN_EDGES_H

#include "dist/layout/edge.h"
#include "model/params/config.h"

/* Builds the table. Not collective. Fails only without memory. Free with edges_free. */
int edges_create(const struct model_config *model, struct edges *out);
void edges_free(struct edges *edges);

/* How many entries of `distances` are introduced at a step (0-based) (model.md, 6). */
int active_distances(const struct delta_config *delta, long step);

/* How many of a layer's edges are active when the first `active` entries of `distances` are: a layer's edges
 * use a prefix of that list. */
int active_edges(const struct edges *edges, int layer, int active);

#endif
