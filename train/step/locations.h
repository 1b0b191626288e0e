/* Locations: where a micro-batch's nodes, edges and gradients are at the moment on a pipeline rank: in the
 * blocks and narrow blocks that lists of actions hand out by number (dist/schedule/schedule.h), and in
 * activation sets, the model's sets of saved activations. Whoever walks a list, to execute it or to predict
 * it, has one (train/step/walk.h), so that passes find what they read and write. */
#ifndef GDN_LOCATIONS_H
#define GDN_LOCATIONS_H

#include "dist/schedule/schedule.h"
#include "kernels/base/arena.h"
#include "model/model.h"

/* A block or narrow block, and what it holds. */
struct buffer {
    real *x;        /* whoever has the locations fills this in */
    bool posted;    /* its receive was started ahead (messages.c) */
    int *mentioned; /* the entry of `where` that names this buffer, or NULL */
};

struct locations {
    /* Fill in, then locations_lay_out. */
    const struct layout *layout; /* this rank's */
    const struct edges *edges;
    int num_layers;
    int micro_batches;          /* of the largest step */
    int blocks, narrow_blocks;  /* buffers */
    const int *activation_sets; /* [layout->chunks] */
    const struct model *model;  /* whose outputs own nodes are; before the first action */

    struct buffer *buffer; /* [blocks + narrow_blocks] by owner, see locations_owner */
    int *chunk_of;         /* [num_layers + 1], entry 1 + node: this rank's chunk that computes it, −1 */

    /* Numbers plus 1, so that zeroed memory is nowhere: */
    int *where[PAYLOADS];   /* [micro_batches, num_layers + 1 or edges] the buffer that holds it */
    int *activation_set_of; /* [micro_batches, chunks] the set that holds the chunk's activations */
    int *micro_batch_of;    /* [Σ activation sets] and back */

    /* Arrays of the pass in progress (model/model.h). */
    real **source, **source_gradient;       /* [num_layers + 1] */
    real **projected, **projected_gradient; /* [edges] */
};

/* Takes the tables from the arena: called once while that counts, once when it has memory. Nothing is
 * anywhere then. */
void locations_lay_out(struct locations *locations, struct arena *arena);

/* Nothing is anywhere: before a list's first action. */
void locations_forget(struct locations *locations);

/* An action begins: notes what it puts where. It has ended: forgets what is of no use to this rank's passes
 * any more. */
void locations_begin(struct locations *locations, const struct action *action);
void locations_end(struct locations *locations, const struct action *action);

/* Is this BACKWARD the last piece of its chunk's? Then its activation set is given back. */
bool locations_last_backward(const struct locations *locations, const struct action *action);

/* A number for each place whose transfers are waited for: of buffers, which is also their index in `buffer`,
 * and behind these of activation sets. */
int locations_owner(const struct locations *locations, enum payload payload, int buffer);
int locations_activation_set_owner(const struct locations *locations, int chunk, int activation_set);

/* The activation set that holds a chunk's activations, −1; the chunk of this rank that computes a node,
 * −1. */
int locations_activation_set(const struct locations *locations, int micro_batch, int chunk);
int locations_chunk(const struct locations *locations, int node);

/* The buffer that holds this; a node's output where this rank has computed it and still has it; either of
 * these. NULL where it is not here. */
real *locations_held(const struct locations *locations, enum payload payload, int micro_batch, int index);
real *locations_own_output(const struct locations *locations, int micro_batch, int node);
real *locations_source(const struct locations *locations, int micro_batch, int node);

/* What the pass of a FORWARD or BACKWARD reads and writes of other chunks': fills in the pass's chunk,
 * activation set and arrays, which are valid until the next call. */
void locations_of_pass(struct locations *locations, const struct action *action, struct pass *pass);

#endif
