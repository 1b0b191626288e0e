/* The pipeline schedule: every pipeline rank's list of actions for one optimiser step, computed before
 * training, verified (dist/verify/verify.h), printed by `gdn plan`, and executed in order
 * (train/step/execute.h). It is the same for all data and tensor indices. 1F1B (Narayanan et al. 2019) or,
 * with several chunks a rank, interleaved 1F1B (Narayanan et al. 2021); or, with weight sets, ZB-H1 (Qi et
 * al. 2024), whose ranks compute gradients of weights where 1F1B's would wait; or, with layout.v, their V, whose
 * first and last stage are on one rank; or any order that follows from planned times (by_time.c).
 *
 * Stage s is chunk layout_chunk_of(s) of rank layout_rank_of(s), its layers layout.stage[s]. A rank executes its actions in
 * order. Only RECEIVE, FREE, FORWARD, FINISH, GATHERED and the collectives SHARE and NORM wait.
 *
 * Memory. The schedule numbers four kinds of buffers, so that their greatest number is known:
 *   activation sets  what one micro-batch saves of a chunk: taken by FORWARD, which waits for
 *                    pending sends of the set's last contents, given back by the end of
 *                    BACKWARD. In a forward-only schedule FORWARD overwrites a set when its
 *                    outputs are no longer needed
 *   weight sets      what gradients of weights of one micro-batch are computed from, where that waits:
 *                    taken by BACKWARD, given back by the end of WEIGHTS
 *   blocks           [T, W] each, W the width of the stream, from one pool a rank: received
 *                    sources, the stream's gradients and source gradients
 *   narrow blocks    [T, edge width] each, from a second pool: projected sources and their
 *                    gradients
 * POST, RECEIVE without POST and TAKE take a block or narrow block; FREE waits for sends from it and gives
 * it back.
 *
 * Contents. From RECEIVE (not POST) or TAKE on a buffer holds what that action says: (payload, index,
 * micro-batch). A rank has at most one buffer in use for each of these, so that the executor finds buffers
 * by them. A gradient's buffer ceases to be in use when the gradient is sent or consumed (by the BACKWARD
 * of its node or of the stream, or by UNPROJECT). Outputs of the rank's own chunks are in the
 * micro-batch's activation set; a chunk may read those of the rank's other chunks.
 *
 * FORWARD reads its stream (node first − 1) and every source outside the chunk that its layers need, from
 * blocks (PAYLOAD_SOURCE) or other chunks' activation sets, and the projected sources of its narrow edges
 * (PAYLOAD_PROJECTED). All of them stay until its BACKWARD is done.
 *
 * BACKWARD reads a block with the gradient of the chunk's last node (PAYLOAD_STREAM_GRADIENT, index end − 1)
 * and overwrites it with the gradient of node first − 1, which is sent and freed as PAYLOAD_STREAM_GRADIENT
 * with that index, or, at the turn of a V, stays for the BACKWARD of the rank's first chunk. It fills narrow blocks with the gradients of its projected sources
 * (PAYLOAD_PROJECTED_GRADIENT). The source gradients that it uses are:
 *   - of every source outside the chunk that its layers read, but for the stream's: added to;
 *   - of the stream's node, where there already is one: added to, then added to the stream's
 *     gradient (where there is none, that sum begins in the pass);
 *   - of the chunk's own nodes, but for its last, where later stages have one: added to the
 *     stream's gradient at the node's layer.
 *
 * The last micro-batch's BACKWARD is cut into several actions, downwards, between which buckets start;
 * they are one pass with the same buffers.
 *
 * BACKWARD with a weight set leaves gradients of weights to WEIGHTS, which needs nothing but the set. WEIGHTS
 * are done in the order of micro-batches, so that sums have one order. What waits for gradients (SHARE,
 * REDUCE) waits for WEIGHTS; then the last micro-batch's WEIGHTS are what is cut into several actions, and
 * its BACKWARD is one.
 *
 * PROJECT reads the edge's source and fills a narrow block; UNPROJECT reads the source and the narrow
 * block `buffer` with the gradient of its projection, and adds to the source gradient. */
#ifndef GDN_SCHEDULE_H
#define GDN_SCHEDULE_H

#include <stdint.h>

#include "dist/layout/route.h"
#include "dist/layout/shard.h"

/* All messages (RECEIVE, POST, SEND) have chunk, micro_batch, payload, index, boundary, peer, message and,
 * but for SEND from an activation set, buffer. Fields that an action does not have are −1. */
enum act {
    ACT_RECEIVE, /* wait for a message, into `buffer` */
    ACT_POST,    /* start the rank's next pass's receive; not every RECEIVE has one */
    ACT_TAKE, /* chunk, micro_batch, payload, index, buffer: of what begins here: a source gradient (zeroed),
                 the last node's gradient, a projected source or its gradient */
    ACT_FORWARD, /* chunk, micro_batch, activation_set */
    ACT_PROJECT, /* as TAKE: edge `index` from its source into narrow block `buffer`; activation_set where the
                    source is the chunk's own */
    ACT_BACKWARD, /* chunk, micro_batch, activation_set, weight_set (−1: gradients of weights are computed in
                     it), layer, end: layers from `layer` down to `end` */
    ACT_WEIGHTS, /* chunk, micro_batch, weight_set, layer, end: the gradients of weights that BACKWARD left */
    ACT_UNPROJECT, /* as TAKE, activation_set: from the projected source's gradient, add to the source
                      gradient and the weights' gradients */
    ACT_SEND,      /* start sending from `buffer`, or where that is −1 the own output in `activation_set` */
    ACT_FREE,      /* micro_batch, payload, index, buffer: not needed any more; wait for sends from it */
    ACT_SHARE,     /* sum the gradients of ZONE_SHARED_… tensors over the stages; all ranks have it */
    ACT_REDUCE,    /* start bucket `index`'s sum over all copies (tensor sums of partial tensors first) */
    ACT_FINISH,    /* wait for it: the own part of the bucket has the sum */
    ACT_NORM,      /* the global gradient norm; every rank decides alike whether to go on */
    ACT_UPDATE,    /* optimiser on the own part of bucket `index` */
    ACT_GATHER,    /* start sending updated weights of bucket `index` to all copies */
    ACT_GATHERED,  /* wait for it */
    ACTS
};

enum payload {
    PAYLOAD_SOURCE,          /* a node's output; a stage's stream is the last node of the stage before */
    PAYLOAD_STREAM_GRADIENT, /* the stream's gradient, with its node's source gradient added */
    PAYLOAD_SOURCE_GRADIENT, /* a node's source gradient, a running sum over the layers that read it */
    PAYLOAD_PROJECTED,       /* an edge's projected source */
    PAYLOAD_PROJECTED_GRADIENT,
    PAYLOADS
};

/* What an action is to whoever predicts or draws a step, and not what it computes. */
enum act_role {
    ROLE_PASS,    /* a pass of the model's, or a projection that belongs to one */
    ROLE_TAKE,    /* makes a buffer ready */
    ROLE_POST,    /* its message may come from now on */
    ROLE_RECEIVE, /* that too, and waits until it is here */
    ROLE_SEND,    /* starts a message */
    ROLE_FREE,    /* waits for sends from its buffer */
    /* Of sums and updates, see act_is_of_update: */
    ROLE_MEET,   /* a sum, once all pipeline ranks that have the action in their lists have come to it */
    ROLE_START,  /* starts an exchange of bucket `index` over all copies */
    ROLE_WAIT,   /* waits for the exchange of bucket `index` that was started last */
    ROLE_UPDATE, /* changes weights */
    ROLES
};

/* What there is to know of a kind of action; one row of kinds.c each. */
struct act_kind {
    enum act_role role;
    bool holds;       /* from it on its buffer holds what it names */
    char letter;      /* in pictures of a step; of passes that of micro-batch 0 */
    /* For action_text: %t what it names (payload, index, micro-batch), %w where that is (buffer or
     * activation set), %k a weight set that it fills; and the fields %a activation set, %b buffer, %c chunk,
     * %e end, %i index, %l layer, %m micro-batch, %p peer, %s weight set. */
    const char *text;
};
extern const struct act_kind act_kinds[ACTS];

/* And of a payload. */
struct payload_kind {
    bool narrow; /* travels projected, in narrow blocks; else in blocks */
    bool down;   /* travels to earlier stages, as gradients do */
    const char *text; /* likewise */
};
extern const struct payload_kind payload_kinds[PAYLOADS];

/* Is it part of sums and updates, and not of passes and their messages? */
static inline bool act_is_of_update(enum act act) {
    return act_kinds[act].role >= ROLE_MEET;
}

/* Is it the receiving end of a message, or a wait: something that computes nothing and hands nothing over? */
static inline bool act_only_waits(enum act act) {
    enum act_role role = act_kinds[act].role;
    return role == ROLE_POST || role == ROLE_RECEIVE || role == ROLE_FREE;
}

static inline bool payload_is_narrow(enum payload payload) {
    return payload_kinds[payload].narrow;
}
static inline bool payload_goes_down(enum payload payload) {
    return payload_kinds[payload].down;
}

struct action {
    enum act act;
    int chunk, micro_batch, activation_set, weight_set;
    int layer, end; /* BACKWARD: layers layer, layer − 1, …, end; end is −1 where the embedding is included;
                       layer is num_layers where it begins with the head */
    enum payload payload;
    int index;    /* node or edge (by payload), or bucket (in shards.bucket) */
    int boundary; /* that a message crosses */
    int peer;     /* pipeline rank at the other end */
    int buffer;   /* block, or narrow block for edges; −1 */
    int message;  /* in [0, schedule.messages), the same at both ends, unique in the step: MPI's tag */
};

struct actions {
    int count;
    struct action *action;
};

struct schedule {
    int ranks; /* pipeline ranks */
    struct actions *rank;
    int *activation_sets; /* [ranks, chunks] sets of saved activations */
    int *weight_sets;     /* [ranks] */
    int *blocks;          /* [ranks] */
    int *narrow_blocks;   /* [ranks] */
    int messages;
};

/* How long a stage's passes of a micro-batch take, in any unit: forward, gradients of inputs, of weights; and what
 * they send to the stage after and the one before. */
struct stage_times {
    int forward, inputs, weights, up, down;
};

struct schedule_options {
    int micro_batches; /* of one rank in a step */
    int num_layers;
    bool forward_only; /* evaluation: no gradients, no buckets */
    bool overlap; /* REDUCE as soon as a bucket is complete, in the last micro-batch's BACKWARD; else after */
    const struct shards *shards; /* [ranks] of every pipeline rank, or NULL: no ACT_REDUCE … ACT_GATHERED */
    bool share;                  /* there are ZONE_SHARED_… tensors */
    /* [ranks] of how many passes gradients of weights may wait; NULL: none on any rank. With one chunk a rank,
     * or a V. */
    const int *weight_sets;
    /* In a V, or with one chunk a rank where it is there: passes in an order by planned times, with so many
     * activation sets a rank, [ranks], of all its chunks; NULL in a V: 2·ranks. */
    const int *activation_sets;
    const struct stage_times *times; /* [stages] for that; NULL: all the same */
};

/* Computes all ranks' lists. Not collective. GDN_INTERNAL without memory, or with weight sets and several
 * chunks a rank that are no V; GDN_INPUT without a micro-batch. */
int schedule_create(const struct edges *edges, const struct routes *routes, const struct layout *layout,
                    const struct schedule_options *options, struct schedule *out);
void schedule_free(struct schedule *schedule);

/* One line for an action, for `gdn plan` and failures: "receive source 3 of micro-batch 2 from rank 1 into
 * block 4". */
void action_text(const struct action *action, char text[160]);

#endif
