/* Locations: where a micro-batch's nodes, edges and gradients are at the moment on a pipeline rank: in the
 * blocks and strips that lists of actions hand out by number (dist/schedule/schedule.h), and in slots, the
 * model's sets of saved activations. Whoever walks a list, to execute it or to predict it, has one
 * (train/step/walk.h), so that passes find what they read and write. */
#ifndef GDN_LOCATIONS_H
#define GDN_LOCATIONS_H

#include "dist/schedule/schedule.h"
#include "kernels/base/arena.h"
#include "model/model.h"

enum { CARGOS = CARGO_EDGE_GRADIENT + 1 };

/* A block or strip, and what it holds. */
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
    int micro_batches;         /* of the largest step */
    int blocks, strips;        /* buffers */
    const int *slots;          /* [layout->chunks] */
    const struct model *model; /* whose outputs own nodes are; before the first action */

    struct buffer *buffer; /* [blocks + strips] by holder, see locations_holder */
    int *where[CARGOS]; /* [micro_batches, num_layers + 1 or edges] number of the buffer that holds it, −1 */
    int *chunk_of;      /* [num_layers + 1], entry 1 + node: this rank's chunk that computes it, −1 */
    int *slot_of;       /* [micro_batches, chunks] slot that holds the chunk's activations, −1 */
    int *micro_of;      /* [Σ slots] and back */

    /* Arrays of the pass in progress (model/model.h). */
    real **node, **deposit;         /* [num_layers + 1] */
    real **strip, **strip_gradient; /* [edges] */
};

/* Takes the tables from the arena: called once while that counts, once when it has memory. */
void locations_lay_out(struct locations *locations, struct arena *arena);

/* Nothing is anywhere: before a list's first action. */
void locations_forget(struct locations *locations);

/* An action begins: notes what it puts where. It has ended: forgets what is of no use to this rank's passes
 * any more. */
void locations_begin(struct locations *locations, const struct action *action);
void locations_end(struct locations *locations, const struct action *action);

/* Is this BACKWARD the last piece of its chunk's? Then its slot is given back. */
bool locations_last_backward(const struct locations *locations, const struct action *action);

/* A number for each place whose transfers are waited for: of buffers, which is also their index in `buffer`,
 * and behind these of slots. */
int locations_holder(const struct locations *locations, enum cargo cargo, int buffer);
int locations_slot_holder(const struct locations *locations, int chunk, int slot);

/* The slot that holds a chunk's activations, −1; the chunk of this rank that computes a node, −1. */
int locations_slot(const struct locations *locations, int micro, int chunk);
int locations_chunk(const struct locations *locations, int node);

/* The buffer that holds this; a node's output where this rank has computed it and still has it; either of
 * these. NULL where it is not here. */
real *locations_held(const struct locations *locations, enum cargo cargo, int micro, int index);
real *locations_own_output(const struct locations *locations, int micro, int node);
real *locations_node(const struct locations *locations, int micro, int node);

/* What the pass of a FORWARD or BACKWARD reads and writes of other chunks': fills in the pass's chunk, slot
 * and arrays, which are valid until the next call. */
void locations_of_pass(struct locations *locations, const struct action *action, struct pass *pass);

#endif
