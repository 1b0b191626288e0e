/* The schedule: every pipeline rank's list of actions for one optimiser step, computed before training,
 * checked (check.h), printed by `gdn plan`, and executed as it stands (train/step/execute.h). It is the same
 * for all data and tensor indices. 1F1B (Narayanan et al. 2019) or, with several chunks a rank, interleaved
 * 1F1B (Narayanan et al. 2021).
 *
 * Stage s is chunk s div P of rank s mod P, its layers layout.stage[s]. Actions of a rank are done in order.
 * Only RECEIVE, FREE, FORWARD, FINISH, GATHERED and the collectives SHARE and NORM wait.
 *
 * Buffers. Three kinds of memory move through a schedule, each handed out here, so that peaks are known:
 *   slots     sets of saved activations of a chunk, taken by FORWARD, which waits for sends from the slot's
 *             last contents, and given back by the end of BACKWARD; in a forward-only schedule FORWARD
 *             overwrites a slot once nobody needs its outputs;
 *   blocks    received nodes, gradients and deposits, [T, D] each, from one pool a rank;
 *   strips    the same for narrow items, [T, edge width] each, from a second pool.
 * POST, RECEIVE without POST and TAKE take a block or strip; FREE gives it back, after waiting for sends.
 *
 * Where things are. A buffer holds what the action that took it says: (cargo, index, micro), from RECEIVE
 * (not POST) or TAKE on. A rank has no more than one buffer in use for each of these, so whoever executes
 * looks them up by it; a gradient or deposit ceases to be in use when it is sent or used up (by its node's or
 * the stream's BACKWARD, by UNPROJECT). Nodes of the rank's own chunks lie in the slot that holds the
 * micro-batch; a chunk may read those of the rank's other chunks.
 *
 * FORWARD finds its stream (node first − 1) and every node outside the chunk that its layers read, in blocks
 * (CARGO_NODE) or other chunks' slots, and the strips of its narrow edges (CARGO_EDGE). All of them stay
 * there until its BACKWARD is done.
 *
 * BACKWARD finds a block with the gradient of the chunk's last node (CARGO_GRADIENT, index end − 1) and
 * leaves in it the gradient of node first − 1, which is what is sent and freed as CARGO_GRADIENT with that
 * index. It finds empty strips for the gradients of its narrow edges (CARGO_EDGE_GRADIENT) and deposits:
 *   - of every node outside the chunk that its layers read, but for the stream's, to which it adds;
 *   - of the stream's node where something was left there before, to which it adds, and which then joins the
 *     gradient (where there is none, that sum begins in the pass);
 *   - of the chunk's own nodes, but for its last, where later stages left something, for the node's layer.
 *
 * The last micro-batch's BACKWARD comes in pieces, downwards, between which buckets start; they are one pass,
 * given the same buffers.
 *
 * PROJECT reads the edge's source node and fills a strip; UNPROJECT reads the node and the strip gradient
 * `buffer`, and adds to the source's deposit. */
#ifndef GDN_SCHEDULE_H
#define GDN_SCHEDULE_H

#include <stdint.h>

#include "dist/layout/route.h"
#include "dist/layout/shard.h"

/* All messages (RECEIVE, POST, SEND) have chunk, micro, cargo, index, boundary, peer, message and, but for
 * SEND from a slot, buffer. Fields that an action does not have are −1. */
enum act {
    ACT_RECEIVE, /* wait for a message, into `buffer` */
    ACT_POST,    /* start the rank's next pass's receive; not every RECEIVE has one */
    ACT_TAKE, /* chunk, micro, cargo, index, buffer: of what begins here: a deposit (zeroed), the last node's
                 gradient, a strip or its gradient */
    ACT_FORWARD,   /* chunk, micro, slot */
    ACT_PROJECT,   /* as TAKE: edge `index` from its source into strip `buffer`; slot where the source is the
                      chunk's own */
    ACT_BACKWARD,  /* chunk, micro, slot, layer, end: layers from `layer` down to `end` */
    ACT_UNPROJECT, /* as TAKE, slot: from the strip's gradient, add to the source's deposit and the weights'
                      gradients */
    ACT_SEND,      /* start sending from `buffer`, or where that is −1 the chunk's own output from `slot` */
    ACT_FREE,      /* micro, cargo, index, buffer: not needed any more; wait for sends from it */
    ACT_SHARE,     /* sum the gradients of ZONE_SHARED_… tensors over the stages; all ranks have it */
    ACT_REDUCE,    /* start bucket `index`'s sum over the data axis (tensor sums of partial tensors first) */
    ACT_FINISH,    /* wait for it: the own part of the bucket has the sum */
    ACT_NORM,      /* the global gradient norm; every rank decides alike whether to go on */
    ACT_UPDATE,    /* optimiser on the own part of bucket `index` */
    ACT_GATHER,    /* start sending updated weights of bucket `index` to the data axis */
    ACT_GATHERED,  /* wait for it */
    ACTS
};

enum cargo {
    CARGO_NODE,     /* a node's output; the stream is its stage's last */
    CARGO_GRADIENT, /* the stream's gradient, which has collected its node's deposits */
    CARGO_DEPOSIT,  /* a node's running sum of deposits */
    CARGO_EDGE,     /* an edge's narrow projections */
    CARGO_EDGE_GRADIENT,
};

/* Does it travel narrow, in strips? Else in blocks. */
static inline bool cargo_is_strip(enum cargo cargo) {
    return cargo == CARGO_EDGE || cargo == CARGO_EDGE_GRADIENT;
}

/* Does it travel to earlier stages, as gradients do? */
static inline bool cargo_goes_down(enum cargo cargo) {
    return cargo != CARGO_NODE && cargo != CARGO_EDGE;
}

struct action {
    enum act act;
    int chunk, micro, slot;
    int layer, end; /* BACKWARD: layers layer, layer − 1, …, end; end is −1 where the embedding is included;
                       layer is num_layers where it begins with the head */
    enum cargo cargo;
    int index;    /* node or edge (by cargo), or bucket (in shards.bucket) */
    int boundary; /* that a message crosses */
    int peer;     /* pipeline rank at the other end */
    int buffer;   /* block, or strip for edges; −1 */
    int message;  /* in [0, schedule.messages), the same at both ends, unique in the step: MPI's tag */
};

struct actions {
    int count;
    struct action *action;
};

struct schedule {
    int ranks; /* pipeline ranks */
    struct actions *rank;
    int *slots;  /* [ranks, chunks] sets of saved activations */
    int *blocks; /* [ranks] */
    int *strips; /* [ranks] */
    int messages;
};

struct schedule_options {
    int micro_batches; /* of one data rank in a step */
    int num_layers;
    bool forward_only; /* evaluation: no gradients, no buckets */
    bool overlap; /* REDUCE as soon as a bucket is complete, in the last micro-batch's backward; else after it
                   */
    const struct shards *shards; /* [ranks] of every pipeline rank, or NULL: no ACT_REDUCE … ACT_GATHERED */
    bool share;                  /* there are ZONE_SHARED_… tensors */
};

/* Computes all ranks' lists. Not collective. GDN_INTERNAL without memory; GDN_INPUT without a micro-batch. */
int schedule_create(const struct edges *edges, const struct routes *routes, const struct layout *layout,
                    const struct schedule_options *options, struct schedule *out);
void schedule_free(struct schedule *schedule);

/* One line for an action, for `gdn plan` and failures: "receive node 3 of micro-batch 2 from rank 1 into
 * block 4". */
void action_words(const struct action *action, char words[160]);

#endif
