/* What creating a store of differences and running it share. Private to delta_store_create.c and
 * delta_store_step.c. */
#ifndef GDN_DELTA_STORE_PRIVATE_H
#define GDN_DELTA_STORE_PRIVATE_H

#include "train/deltas/file.h"
#include "train/deltas/gates.h"
#include "train/deltas/delta_store.h"

struct delta_store {
    struct delta_place place;
    char directory[4096]; /* RUN/deltas */
    struct arena arena;
    bool watches, files; /* this rank sees connections; and factorises and writes them */
    bool all_replicated; /* every tensor rank has all gates */
    int layers, max;     /* its layers that have connections to store; most connections of one */
    int connections;     /* of all of them */
    bool *layer;         /* [num_layers] whose connections are watched */
    struct gates *part;  /* [tensor ranks, or context ranks if these are more] */
    /* With several context ranks: a piece of a difference, this rank's and theirs, each in `doubles` [as many];
     * and on the rank that factorises whole sequences [T, D]. */
    double *mine, *pieces;
    long doubles;
    real *whole;
    struct lowrank lowrank;
    struct delta_record *record; /* [max] of the layer in progress, with memory for its factors */
    struct delta_watch watch;
    struct delta_writer *writer;

    bool under_way; /* on all ranks alike: a store that has not been told of yet */
    int64_t step;
    const struct edge_set *active;
    int count;  /* records of the layer in progress */
    struct delta_tally tally;
    struct delta_failure failure;
    double factorise_seconds, stall_seconds;
};

/* Context ranks of the configuration. */
static inline int delta_store_context(const struct delta_store *s) {
    return s->place.config->mesh.size[AXIS_CONTEXT];
}

/* Watches one connection (struct delta_watch). Collective over the tensor and context axes. */
void delta_store_see(void *store, const struct delta_view *view);

#endif
