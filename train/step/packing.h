/* Messages in another type than that in which what they carry is stored (mesh.wire: bf16): a message is
 * packed into a room of its own when it is sent, and unpacked from one when it has come. There is a room for
 * each block and narrow block, and for what a chunk's own outputs go as, one for each of its activation sets:
 * what a room was sent from is waited for before its owner is used anew, so that nothing else needs to be
 * known of it.
 *
 * A stage goes on with what it has computed, exactly; others with what they were sent, and what these send on
 * is rounded no second time. So all others have the same values.
 *
 * Where messages are compressed (boundary.h) it is the factors that are packed. They and their rooms are on
 * the host, all others where blocks are. */
#ifndef GDN_PACKING_H
#define GDN_PACKING_H

#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "train/partition/pipeline.h"

struct packing {
    const struct ops *ops;           /* of the device that blocks lie on; NULL: none is packed, in plans */
    const struct pipeline *pipeline; /* with this rank's actions of a step with all distances */
    const struct layout *layout;     /* this rank's */
    long rows;                       /* of the largest block */
    const long *columns;             /* [PAYLOADS] */
    int nodes;                       /* num_layers + 1 */
    /* the rest is private to packing.c */
    const struct ops *host;
    long room, narrow_room; /* elements of the largest message of either kind */
    uint16_t *block;        /* [blocks, room] */
    uint16_t *narrow;       /* [narrow blocks, narrow_room] */
    uint16_t *output;       /* [outputs, room] */
    int *output_of;         /* [chunks, nodes] the first one of node n as chunk c sends it, −1 */
};

/* Takes the rooms: `host` has tables, and rooms of compressed messages, `blocks` the others. Called once
 * while the arenas count, once when they have memory. What is above `host` must be set. */
void packing_lay_out(struct packing *packing, struct arena *host, struct arena *blocks);

/* Whether messages are packed at all. Else none of these is called: */
static inline bool packs(const struct packing *packing) {
    return packing->layout->wire == WIRE_BF16;
}
/* The room of a message's buffer, or for a SEND of an own output that of the activation set: NULL where no
 * step should have it. */
uint16_t *packing_room(const struct packing *packing, const struct action *action, int activation_set);
/* x [count], what the message carries, into its room and out of it. */
void packing_pack(const struct packing *packing, const struct action *action, long count, const real *x,
                  uint16_t *room);
void packing_unpack(const struct packing *packing, const struct action *action, long count,
                    const uint16_t *room, real *x);

#endif
