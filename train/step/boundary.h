/* Compressed boundaries (mesh.compress_boundary): in training, the blocks [T, D] that cross pipeline stages,
 * nodes, gradients and deposits, go as low-rank factors q [T, k] and b [k, D] (kernels/lowrank/lowrank.h) in
 * one message of k·(T + D) elements, and the receiver goes on with q·b. Narrow strips stay as they are, and
 * so does what the schedule says: messages are shorter, nothing else.
 *
 * Whose is the loss. The stage that computes a node goes on with it as it is; all others have what arrived.
 * What arrived is handed on as it came, so nothing is lost twice, and all receivers have the same.
 *
 * Feedback (mesh.compress_feedback; Song et al. 2023, "Optimus-CC"): what compression drops of a gradient or
 * deposit is kept, and added to the same message of the next micro-batch before that is compressed. The
 * update sums over micro-batches, so it comes late, but it comes; what the last one drops is lost, and each
 * step begins with nothing, so that checkpoints need not hold it. A node has no later message that could make
 * up for its loss.
 *
 * Tensor ranks each send their own copy. Nodes and gradients are whole and the same on all of them, and so
 * are their factors; a deposit may be this rank's terms of a sum, which is the sum of what each rank sends.
 *
 * The sketch that factors begin from is a function of step and message: the same run gives the same bits.
 *
 * The host factorises and messages are the host's memory, whatever device the blocks lie on: they are
 * downloaded to be packed, and factors that have arrived are uploaded to be multiplied. */
#ifndef GDN_BOUNDARY_H
#define GDN_BOUNDARY_H

#include "kernels/base/arena.h"
#include "kernels/lowrank/lowrank.h"
#include "train/partition/boundary_size.h"
#include "train/partition/pipeline.h"

/* What a pipeline rank's messages are packed in. */
struct boundary {
    const struct ops *ops;           /* of the device that blocks lie on; NULL: the host, in plans */
    const struct pipeline *pipeline; /* with this rank's actions of a step with all distances */
    const struct layout *layout;     /* this rank's; compress may be 0: then there is nothing here */
    long T, D;                       /* of the largest block */
    int nodes;                       /* num_layers + 1 */
    /* the rest is private to boundary.c */
    const struct ops *host;
    struct lowrank scratch;
    real *copy;     /* [T, D] of a block, where blocks lie on a device */
    real *factors;  /* [room] on the device, likewise */
    long room;      /* elements of the largest message */
    real *block;    /* [blocks, room] what a block came as, and, once that has changed, goes as */
    real *output;   /* [outputs, room] what own nodes go as: one for each slot of the node's chunk */
    int *output_of; /* [nodes] the first one of node n at 1 + n, −1 */
    int *packed;    /* [outputs] micro-batch that is in it, −1 */
    int outputs;
    real *residual;   /* [residuals, T, D] what was dropped of gradients and deposits */
    int *residual_of; /* [chunks, nodes] of a message with node n's from chunk c, −1 */
    int residuals;
    uint64_t step;
    int micro_batches; /* of the step */
};

/* Takes the memory from the arena, and from `device` what must lie on a device other than the host: called
 * once while they count, once when they have memory. What is above `host` must be set, and zeros behind it.
 */
void boundary_lay_out(struct boundary *boundary, struct arena *arena, struct arena *device);

/* Before the first message of a step of so many micro-batches; `step` numbers it. */
void boundary_begin(struct boundary *boundary, uint64_t step, int micro_batches);

/* Where the message for a block arrives, and goes from. */
real *boundary_room(const struct boundary *boundary, int block);

/* x [T, D] from what has arrived for the block. */
void boundary_unpack(struct boundary *boundary, int block, long T, real *x);

/* What a SEND from a block sends. Nodes, and what has just been received, go as they came; other gradients
 * and deposits are compressed from x, which may be overwritten. `list` has the action. */
const real *boundary_pack(struct boundary *boundary, const struct actions *list, const struct action *action,
                          long T, real *x);

/* What a SEND of the chunk's own output x from a slot sends; NULL where no step should. */
const real *boundary_pack_output(struct boundary *boundary, const struct action *action, int slot, long T,
                                 const real *x);

#endif
