/* The store of differences (delta_store.* of the configuration): in every interval-th step, low-rank factors
 * of the differences of the batch's first micro-batch, and statistics of the gates, written to
 * RUN/deltas (train/deltas/file.h) while training goes on. It reads what the forward pass computes and
 * changes none of it.
 *
 * Of the ranks that have the first part of the batch the first tensor and context rank of each pipeline rank factorises
 * the connections into its layers, as the forward pass comes to them, makes the file of a layer in memory and hands it to a thread that writes
 * (train/deltas/writer.h). The next store waits for that thread, so that at most the files of one step are in
 * memory. Context ranks bring their pieces of the differences together for it. What fails is told at the end, and never stops the pass. */
#ifndef GDN_DELTA_STORE_H
#define GDN_DELTA_STORE_H

#include "dist/layout/edge.h"
#include "dist/layout/layout.h"
#include "dist/mesh/mesh.h"
#include "model/model.h"
#include "train/config/config.h"
#include "train/deltas/writer.h"

struct delta_store; /* opaque */

/* What a store is made for; all of it outlives the store. */
struct delta_place {
    const struct config *config;
    const struct layout *layout; /* this rank's */
    const struct edges *edges;
    const struct ops *ops; /* the host's */
    struct mesh *mesh;
    long batch;            /* sequences of a micro-batch, at most */
    const char *directory; /* RUN */
};

/* *out is NULL where the configuration has no store. Reserves all memory but for the files' images, and
 * starts the thread. Not collective. GDN_INTERNAL. */
int delta_store_create(const struct delta_place *place, struct delta_store **out);

/* Waits for the files under way; what becomes of them is no longer told. NULL is allowed. */
void delta_store_free(struct delta_store *store);

/* Bytes that the store takes on a rank with this part of the batch and place on the context axis, at most: what is
 * reserved and the images of one step's files. Of `place` the mesh and the directory are not looked at. 0 where there is
 * no store, and on ranks with other parts than the first. */
long delta_store_memory(const struct delta_place *place, int batch_part, int context_index);

/* Begins the store of a step with these edges (NULL: all), which last as long, where one is due: returns what
 * is to watch the step's first micro-batch on this rank (NULL: nothing). The outcome of the store before has
 * been told. `store` may be NULL. */
const struct delta_watch *delta_store_begin(struct delta_store *store, int64_t step,
                                            const struct edge_set *active);

/* What has become of a store, over all ranks. */
struct delta_report {
    bool done; /* false: there is none, or it is not finished yet */
    int64_t step;
    struct delta_tally tally;
    struct delta_failure failure; /* the first of the lowest rank that has one, which it names */
    /* On the rank where they are longest: factorising; all else that training waited for. */
    double factorise_seconds, stall_seconds;
};

/* Asks whether the store under way is finished on all ranks, or waits for it; tells of each store once.
 * `store` may be NULL, on all ranks. Collective over the mesh. GDN_INTERNAL where MPI failed. */
int delta_store_poll(struct delta_store *store, bool wait, struct delta_report *out);

#endif
