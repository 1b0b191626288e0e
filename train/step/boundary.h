/* Compressed boundaries (mesh.compress_boundary): in training, the blocks [T, D] that cross pipeline
 * stages (sources, the stream's gradients and source gradients) are sent as low-rank factors q [T, k] and
 * b [k, D] (kernels/lowrank/lowrank.h) in one message of k·(T + D) elements, and the receiver continues
 * with q·b. Projected sources are sent uncompressed. The schedule is the same; only messages are shorter.
 *
 * The stage that computes a node continues with the exact output, all other stages with what they
 * received, which they forward unchanged. So there is one loss, and all receivers have the same values.
 *
 * Feedback (mesh.compress_feedback; Song et al. 2023, "Optimus-CC"): what compression drops of a gradient
 * is kept and added to the same message of the next micro-batch before that is compressed. The update sums
 * over micro-batches, so it is applied late. What the last micro-batch drops is lost; each step begins
 * with zeros, so that checkpoints need not store it. A source has no later message to which its loss could
 * be added.
 *
 * Each tensor rank sends its own copy. Sources and the stream's gradients are full and the same on all of
 * them, and so are their factors; a source gradient may be a rank's terms of a sum, which then is the sum
 * of what the ranks send.
 *
 * Where context ranks share sequences, their rows are factorised together, but for rounding into the factors
 * that one rank would make, so what is compressed, and when, is the same on all of them; each sends its own
 * rows' part of q, and b.
 *
 * The sketch of the factorisation is a function of step and message: the same run gives the same bits.
 *
 * The host factorises, and messages are in host memory, on whatever device the blocks are: blocks are
 * downloaded to be compressed, received factors are uploaded to be multiplied. */
#ifndef GDN_BOUNDARY_H
#define GDN_BOUNDARY_H

#include "dist/comm/axis_host.h"
#include "kernels/base/arena.h"
#include "kernels/lowrank/lowrank.h"
#include "train/partition/boundary_size.h"
#include "train/partition/pipeline.h"

/* What compresses a pipeline rank's messages. */
struct boundary {
    const struct ops *ops;           /* of the device that blocks lie on; NULL: the host, in plans */
    const struct pipeline *pipeline; /* with this rank's actions of a step with all distances */
    const struct layout *layout;     /* this rank's; compress may be 0: then there is nothing here */
    struct axis *context;            /* NULL in plans of memory */
    long T, D;                       /* of the largest block */
    int nodes;                       /* num_layers + 1 */
    /* the rest is private to boundary.c */
    const struct ops *host;
    struct lowrank scratch;
    struct axis_host host_sums; /* over the context axis, where it has several ranks, */
    struct lowrank_peers peers; /* as lowrank calls it; size 0 without */
    real *copy;    /* [T, D] of a block, where blocks lie on a device */
    real *factors; /* [room] on the device, likewise */
    long room;     /* elements of the largest message */
    real *block;   /* [blocks, room] what a block came as, and, once that has changed, goes as */
    real *output;  /* [outputs, room] what own nodes go as: one for each activation set of the node's chunk */
    int *output_of;  /* [chunks, nodes] the first one of node n as chunk c sends it, −1 */
    int *compressed; /* [outputs] micro-batch that is in it, −1 */
    int outputs;
    real *residual;   /* [residuals, T, D] what was dropped of gradients and source gradients */
    int *residual_of; /* [chunks, nodes] of a message with node n's from chunk c, −1 */
    int residuals;
    uint64_t step;
    int micro_batches; /* of the step */
};

/* Takes the memory from the arena, and from `device` what must lie on a device other than the host: called
 * once while they count, once when they have memory. What is above `host` must be set, and zeros behind
 * it. */
void boundary_lay_out(struct boundary *boundary, struct arena *arena, struct arena *device);

/* Reserves what sums over context ranks need, after the layout. Not collective. GDN_INTERNAL without memory.
 */
int boundary_reserve(struct boundary *boundary);
void boundary_free(struct boundary *boundary);

/* In a dry run, which lays nothing out: counts on the context axis what compressing for this SEND of T rows
 * hands over. `list` has the action. */
void boundary_count(struct boundary *boundary, const struct actions *list, const struct action *action,
                    long T);

/* Before the first message of a step of so many micro-batches; `step` numbers it. */
void boundary_begin(struct boundary *boundary, uint64_t step, int micro_batches);

/* Where the message for a block arrives, and goes from. */
real *boundary_room(const struct boundary *boundary, int block);

/* x [T, D] from what has arrived for the block. */
void boundary_decompress(struct boundary *boundary, int block, long T, real *x);

/* What a SEND from a block sends. Nodes, and what has just been received, go as they came; other gradients
 * and source gradients are compressed from x, which may be overwritten. `list` has the action. */
const real *boundary_compress(struct boundary *boundary, const struct actions *list,
                              const struct action *action, long T, real *x);

/* What a SEND of the chunk's own output x from an activation set sends; NULL where no step should. */
const real *boundary_compress_output(struct boundary *boundary, const struct action *action,
                                     int activation_set, long T, const real *x);

#endif
