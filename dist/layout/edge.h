/* The edge table's type: delta connections are a static list of edges between layers, known before training
 * starts (model.md, 2). model/params/edges.h fills it. Activation lifetimes, progressive introduction,
 * pipeline transport, recomputation and pruning read this table; none has a private copy of that knowledge.
 *
 * A node is a layer's output z, named by the layer; node −1 is the embedding output. */
#ifndef GDN_EDGE_H
#define GDN_EDGE_H

struct edge {
    int target;     /* layer it leads into */
    int distance;   /* one of delta.distances */
    int source;     /* node that it reads, target − distance */
    int connection; /* its place among the target's edges, by increasing distance */
    double scale;   /* s(distance) */
};

struct edges {
    int count;
    struct edge *edge; /* by target, then by distance: a layer's active edges are a prefix of its own */
    int *first;        /* [num_layers + 1]: a layer's edges are first[l] … first[l+1] − 1 */
};

#endif
