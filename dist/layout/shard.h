/* Buckets and shards: how flat buffers are cut for gradient sums over all copies and for the optimiser.
 * A copy is a rank that holds the same part of the model as others (axes.h, AXIS_COPIES).
 *
 * A bucket is a range of one zone of the flat buffers (table.h), whatever tensors lie there. In ZONE_LARGE
 * zones each copy owns an even part of every bucket, its shard: it gets the summed gradient of that part,
 * updates it, and sends the weights to the others. In ZONE_SMALL zones every rank sums and updates all.
 * An optimiser's moments (table.h) exist for owned parts only. These have `moments` elements, which is (large
 * ÷ copies) + small, padding included, in the order of addresses: with one copy an element's place is its
 * flat index. A moment has the same places, but leaves out buckets without a tensor that it is kept of.
 *
 * Copies may add up in groups of neighbours first (dist/sync/sync.h). Parts are then numbered so that those which
 * a copy passes on for its group lie side by side: shards_part.
 *
 * Pieces are the intersections of owned parts and tensors: what optimiser, norm and checkpoints walk. */
#ifndef GDN_SHARD_H
#define GDN_SHARD_H

#include "dist/layout/table.h"

enum {
    /* Elements. Zones, buckets and shards are multiples of it (times copies, for all but shards), so that the
     * norm's blocks of this length lie on one rank each. */
    SHARD_GRAIN = 1024,
    /* Buckets that are summed at a time, at most: dist/sync, and the schedules made for it. */
    SYNC_IN_FLIGHT = 2,
};

struct bucket {
    long first, count; /* range of the flat buffers */
    bool sharded;      /* else every copy owns all of it */
    bool shared;       /* of a ZONE_SHARED_… zone: wait for the sum over stages */
    int ready; /* lowest layer with a tensor in it: complete once that layer's last backward is done (−1:
                  the embedding) */
    long own_first, own_count; /* this rank's part */
    long moment;               /* place of the own part in the moments */
    int kept;                  /* moments that are kept of any of its tensors */
    long skipped[MOMENTS];     /* elements before it that the moment leaves out */
};

struct piece {
    int row;    /* of the table */
    int bucket; /* that it lies in */
    long first; /* first element within the rank's part of the tensor, as in memory: flat index row.offset +
                   first */
    long count;
    long moment; /* place in the moments */
};

struct shards {
    int copies, group; /* copies of a group, which divides them; 1: there are none */
    int buckets;
    struct bucket *bucket; /* in the order in which backward completes them: highest address first within
                              zones, shared ones last */
    int pieces;
    struct piece *piece; /* by flat index */
    long moments;
    long kept[MOMENTS]; /* elements of each moment */
};

/* Cuts a table for copy `index` of `copies`, in groups of `group`, into buckets of at most `bucket` elements
 * (rounded up to copies·SHARD_GRAIN). Not collective. GDN_INTERNAL without memory. */
int shards_create(const struct table *table, int copies, int index, int group, long bucket,
                  struct shards *out);
void shards_free(struct shards *shards);

/* Which of a bucket's even parts a copy owns: the j-th of group n has number j·groups + n. Without groups its own
 * number. */
static inline int shards_part(int copies, int group, int copy) {
    return copy % group * (copies / group) + copy / group;
}

/* A bucket's exchange between copies goes in two legs (dist/sync/buckets.c): between those of a group, and between those
 * that have the same number in their groups. */
enum leg { WITHIN, ACROSS, LEGS };

/* The copies of a copy's leg: so many, first, first + stride, …, of which it is number `index`. */
struct leg_copies {
    int size, index, first, stride;
};
static inline struct leg_copies shards_leg(int copies, int group, int copy, enum leg leg) {
    const int member = copy % group, of = copy / group;
    if (leg == WITHIN) return (struct leg_copies){group, member, of * group, 1};
    return (struct leg_copies){copies / group, of, member, group};
}

/* Where a piece begins in moment `which` of the state, which its tensor must have. */
static inline long shards_place(const struct shards *shards, const struct piece *piece, int which) {
    return piece->moment - shards->bucket[piece->bucket].skipped[which];
}

#endif
