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
    int target;       /* layer it leads into */
    int distance;     /* target − source */
    int source;       /* node that it reads */
    int rule;         /* that reads it, of the model's list */
    int connection;   /* its place among those of the rule into the target, by increasing distance */
    int introduced;   /* so many distances must be for it to be active; 0: it always is */
    bool measured;    /* what it contributes is among the sums that regularisers and measurements take */
    bool whole;       /* its rule reads the source itself, no projection of it */
    double scale;     /* s(distance) */
    unsigned without; /* bit set of those tensors of its rule's connections that it has not: none of them
                         where its source is read beside another */
};

struct edges {
    int count, num_layers;
    struct edge *edge; /* by target, rule, distance */
    int measured;      /* so many are */
    int *first;        /* [num_layers + 1]: a layer's edges are first[l] … first[l+1] − 1 */
    int *leaving;      /* [count] edges by source, then by target */
    int *leaves; /* [num_layers + 2]: those of node n are leaving[leaves[1 + n]] … [leaves[2 + n] − 1] */
};

/* The table of a list of edges in any order, of which all but distance and connection are read. Not
 * collective. GDN_INTERNAL for an edge that does not lead up from a node, that is there twice, or without
 * memory. Free with edges_free. */
int edges_of(const struct edge *list, int count, int num_layers, struct edges *out);
void edges_free(struct edges *edges);

/* A set of a table's edges: those that are active in a step. NULL stands for all of them. */
struct edge_set {
    int count;
    bool *has; /* [edges.count] */
    int *into; /* [num_layers] how many lead into a layer */
    int measured;
};

/* The set of the edges e with has[e], which is copied. Not collective. GDN_INTERNAL without memory. Free with
 * edge_set_free. */
int edge_set_create(const struct edges *edges, const bool *has, struct edge_set *out);
void edge_set_free(struct edge_set *set);

/* How many of a layer's edges are in the set; and of all those that are measured. */
static inline int edge_set_into(const struct edge_set *set, const struct edges *edges, int layer) {
    return set ? set->into[layer] : edges->first[layer + 1] - edges->first[layer];
}
static inline int edge_set_measured(const struct edge_set *set, const struct edges *edges) {
    return set ? set->measured : edges->measured;
}

static inline bool edge_set_has(const struct edge_set *set, int edge) {
    return !set || set->has[edge];
}

#endif
