/* Routes: what crosses each boundary between stages for the sake of delta connections.
 *
 * Stage s runs on pipeline rank s mod P, or in a V (layout.h) on the rank that its second half comes back over.
 * Boundary b lies between stages b and b+1; in a V nothing crosses the one at the turn. Forward it carries the
 * stream (the output of stage b's last layer, a node like any other) and those nodes that some later stage
 * reads and the receiving rank does not have: a node that a rank has received or computed stays there until
 * its last use, also for later chunks. Gradients come back over every boundary between a node's last target
 * and its own stage as one running sum, to which each stage adds what its layers leave, by descending target
 * layer: the same additions in the same order as on one rank.
 *
 * For `bottleneck` without `normalize`, where the projections of a node that later stages need (Hd + G
 * elements a token for each edge, a + 1 more with aggregate attention) are together smaller than the node
 * (W), they travel instead: then the boundary carries edges, not the node, and so does every later one for
 * these edges. The sending rank, the edge's projector, holds the edge's Wp and W1 (and A) too. The stream
 * always travels whole. Where the target is on a rank that has the node (the projector's own, in a later
 * chunk), it reads the node. Gradients of projections come back to the projector's stage over every boundary
 * between. */
#ifndef GDN_ROUTE_H
#define GDN_ROUTE_H

#include "dist/layout/edge.h"
#include "dist/layout/layout.h"

/* One thing that crosses a boundary, in one direction. */
struct crossing {
    enum { CROSSING_SOURCE, CROSSING_PROJECTED } kind;
    int index; /* node, or index into edges.edge */
};

struct crossings {
    int count;
    struct crossing *crossing;
};

struct routes {
    const struct edge_set *active; /* that they are made for; the caller's */
    int boundaries;             /* stages − 1 */
    struct crossings *forward;  /* [boundaries] besides the stream: nodes ascending, then edges ascending */
    struct crossings *backward; /* [boundaries] the same for gradients, besides the stream's */
    int *projector; /* [edges.count] the stage that projects the edge's source and sends it; −1: the target's
                       stage reads the node itself */
};

/* What `narrow` decides with; elements a token on one tensor rank. */
struct route_widths {
    bool narrow;     /* allowed: layout.narrow, bottleneck, no normalize */
    long node, edge; /* W, stream_width; Hd/tensor + G (+ a + 1) */
};

/* For the active edges, a set that outlives the routes. The choice between a node and its edges is made with
 * all edges active, so that it does not change while a run introduces them: projector[] does not depend on
 * `active`. Not collective. GDN_INTERNAL without memory. */
int routes_create(const struct edges *edges, const struct edge_set *active, const struct layout *layout,
                  const struct route_widths *widths, struct routes *out);
void routes_free(struct routes *routes);

#endif
