/* The edge table's type: delta connections are a static list of edges between layers, known before training
 * starts (model.md, 2). model/params/edges.h fills it. Activation lifetimes, progressive introduction,
 * pipeline transport, recomputation and pruning read this table; none has a private copy of that knowledge.
 * Any list of edges that lead up is a table, not only one that has the same distances in every layer.
 *
 * A node is a layer's output z, named by the layer; node −1 is the embedding output. */
#ifndef GDN_EDGE_H
#define GDN_EDGE_H

#include <stdbool.h>

struct edge {
    int target;     /* layer it leads into */
    int distance;   /* target − source */
    int source;     /* node that it reads */
    int connection; /* its place among the target's edges, by increasing distance */
    double scale;   /* s(distance) */
};

struct edges {
    int count, num_layers;
    struct edge *edge; /* by target, then by distance */
    int *first;        /* [num_layers + 1]: a layer's edges are first[l] … first[l+1] − 1 */
    int *leaving;      /* [count] edges by source, then by target */
    int *leaves; /* [num_layers + 2]: those of node n are leaving[leaves[1 + n]] … [leaves[2 + n] − 1] */
};

/* The table of a list of edges in any order, of which target, source and scale are read. Not collective.
 * GDN_INTERNAL for an edge that does not lead up from a node, that is there twice, or without memory. Free
 * with edges_free. */
int edges_of(const struct edge *list, int count, int num_layers, struct edges *out);
void edges_free(struct edges *edges);

/* A set of a table's edges: those that are active in a step. NULL stands for all of them. */
struct edge_set {
    int count;
    bool *has; /* [edges.count] */
    int *into; /* [num_layers] how many lead into a layer */
};

/* The set of the edges e with has[e], which is copied. GDN_INTERNAL without memory. Free with edge_set_free.
 */
int edge_set_create(const struct edges *edges, const bool *has, struct edge_set *out);
void edge_set_free(struct edge_set *set);

/* How many of a layer's edges are in the set; and of all. */
static inline int edge_set_into(const struct edge_set *set, const struct edges *edges, int layer) {
    return set ? set->into[layer] : edges->first[layer + 1] - edges->first[layer];
}
static inline int edge_set_count(const struct edge_set *set, const struct edges *edges) {
    return set ? set->count : edges->count;
}

static inline bool edge_set_has(const struct edge_set *set, int edge) {
    return !set || set->has[edge];
}

#endif
