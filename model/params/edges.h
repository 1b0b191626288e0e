/* The edge table: delta connections are a static list of edges between layers, known before training.
 * Activation lifetimes, progressive introduction and every later user (recomputation, pipeline transport,
 * pruning) read this table; none has a private copy of that knowledge (model.md, 2). */
#ifndef GDN_EDGES_H
#define GDN_EDGES_H

#include "dist/layout/edge.h"
#include "model/params/config.h"

/* The table of a configuration: edges of its distances, as far as layers reach back. Not collective. Fails
 * only without memory. Free with edges_free. */
int edges_create(const struct model_config *model, struct edges *out);

/* The set of the edges of the first `active` distances. Fails only without memory. Free with
 * edge_set_free. */
int edges_introduced(const struct edges *edges, const struct delta_config *delta, int active,
                     struct edge_set *out);

/* How many entries of `distances` are introduced at a step (0-based) (model.md, 6). */
int active_distances(const struct delta_config *delta, long step);

/* How many of a layer's edges are active when the first `active` entries of `distances` are: a layer's edges
 * use a prefix of that list. */
int active_edges(const struct edges *edges, int layer, int active);

#endif
