/* The edge table: delta connections are a static list of edges between layers, known before training.
 * Activation lifetimes, progressive introduction and every later user (recomputation, pipeline transport,
 * pruning) read this table; none has a private copy of that knowledge (model.md, 2). */
#ifndef GDN_EDGES_H
#define GDN_EDGES_H

#include "dist/layout/edge.h"
#include "model/params/config.h"

/* The set of the edges of the first `active` distances, with those that are always active. Fails only without memory. Free
 * with edge_set_free. */
int edges_introduced(const struct edges *edges, int active, struct edge_set *out);

/* How many connections lead into the layer that has most, at most. */
int delta_most_into(const struct delta_config *delta);

/* Those listed that lead into a layer: the first of them in delta->edges; returns how many. */
int delta_edges_into(const struct delta_config *delta, int layer, const struct delta_edge **first);

/* Puts the list in its order: by target, then by distance. */
void delta_edges_sort(struct delta_config *delta);

/* How many entries of `distances` are introduced at a step (0-based) (model.md, 6); 0 without any, where all
 * edges are there from the first step on. */
int active_distances(const struct delta_config *delta, long step);

/* How many of a layer's measured edges are in the set. */
int measured_into(const struct edges *edges, const struct edge_set *set, int layer);

#endif
