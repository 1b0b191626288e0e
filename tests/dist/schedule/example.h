/* Examples of models cut into pipeline stages, for the tests of routes, schedules and their verifier. */
#ifndef GDN_TESTS_EXAMPLE_H
#define GDN_TESTS_EXAMPLE_H

#include "dist/verify/verify.h"
#include "kernels/base/status.h"

/* What an example is made from; fields left out are 0. */
struct shape {
    int layers, pipeline, chunks, micro_batches;
    bool v;           /* with two chunks */
    int in_flight;    /* activation sets of each rank; 0: as usual */
    int distances[6]; /* increasing; 0 ends */
    bool embedding;   /* embedding source */
    int active;       /* distances; 0: all */
    int left_out;     /* of the edges, a part of 1/left_out is missing … */
    int inactive;     /* … and of those, 1/inactive is not active, whatever their distance; 0: none */
    bool narrow;
    long node, edge; /* widths */
    int ends[40];    /* of the stages; 0: evenly */
    int buckets;     /* of each rank; 0: no shards */
    bool overlap, share, forward_only;
    int weight_sets; /* rank r has r, but no more than this; 0: none has any */
    unsigned seed; /* of the buckets */
};

struct example {
    struct shape shape;
    struct edges edges;
    struct edge_set active;
    struct span stage[128]; /* layout.stage */
    struct layout layout;
    struct routes routes;
    struct shards *shards;
    int weight_sets[64], activation_sets[64]; /* of the options */
    struct schedule_options options;
    struct schedule schedule;
};

/* Edges, layout and routes; then also the schedule. example_free after either. */
void example_routes(const struct shape *shape, struct example *out);
void example_schedule(const struct shape *shape, struct example *out);
void example_free(struct example *example);

/* A random shape, the n-th of a seed. */
struct shape example_random(unsigned seed, unsigned n);
/* One line that says how it was made. */
void example_print(const struct shape *shape);

int example_check(const struct example *example);

/* The time of the lists where everything but passes takes nothing but
 * waiting: RECEIVE for the send, FREE for its receive to begin. */
int example_makespan(const struct example *example);

/* The edge from a node into a layer. */
int example_edge(const struct example *example, int source, int target);

#endif
