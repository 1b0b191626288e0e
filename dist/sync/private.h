/* What the files of the gradient sync share (sync.h is what it offers):
 *   size.c     elements and bytes, from tables alone, for the plan and for what is reserved
 *   create.c   creation
 *   partial.c  rows that are parts of a sum over the tensor axis
 *   shared.c   rows that several stages hold
 *   buckets.c  buckets of the gradient over all copies */
#ifndef GDN_SYNC_PRIVATE_H
#define GDN_SYNC_PRIVATE_H

#include "dist/comm/async_op.h"
#include "dist/sync/sync.h"

static const int64_t REAL_BYTES = sizeof(real);

/* What is done of a bucket. */
enum phase { IDLE, REDUCING, GATHERING };

/* Gathers under way at a time through host memory, which bounds that. */
enum { GATHERS = 4 };

struct sync {
    struct mesh *mesh;
    const struct table *table;
    const struct shards *shards;
    /* Communicators of their own: what is under way meets no other call. */
    struct async_ranks leg[LEGS]; /* the copies of this one's group; those with its number in other groups */
    MPI_Comm pipeline;

    /* Buckets. */
    struct exchanged {
        enum phase phase;
        struct async_op op; /* of the leg under way */
        real *x;            /* the bucket in the flat buffer */
        int place;          /* of scratch, while it is being reduced */
    } *bucket;              /* [buckets] */
    int first;              /* the one whose first leg is under way; −1: none */
    bool used[SYNC_IN_FLIGHT];
    real *scratch;       /* [SYNC_IN_FLIGHT, largest] every copy's version of the own part */
    long largest;        /* bucket */
    int under_way;       /* operations */
    int gather[GATHERS]; /* buckets whose gathers were started last, in turn */
    int gathers;         /* so far */

    /* Partial rows. */
    int reduced;         /* buckets in this step */
    int from;            /* layers from here up were summed in this step */
    int lowest, highest; /* layers of the table */
    real *packed;        /* a layer's partial rows side by side, for one sum */

    real *versions; /* every owner's version of a piece of a shared row */
    struct async_op *swap; /* [2, owners] with every other owner, there and back */
};

static inline bool is_shared(const struct row *row) {
    return row->zone == ZONE_SHARED_LARGE || row->zone == ZONE_SHARED_SMALL;
}

/* Lowest and highest layer of a table; 0 where that is empty. */
void sync_find_layers(const struct table *table, int *lowest, int *highest);

/* Elements of a shared row that are exchanged in one go: the same on all of its owners. */
long sync_shared_piece(const struct row *row);

/* The owners of the row that most pipeline ranks share; 0 where none is shared. */
int sync_most_owners(const struct table *table);

/* Elements of the longest bucket, and of all owners' versions of the longest piece of a shared row. */
long sync_longest_bucket(const struct shards *shards);
long sync_longest_versions(const struct table *table);

/* Sums a layer's partial rows over the tensor axis, those in shared zones or the others. Collective over that
 * axis, which keeps a failure in its status. */
void sync_sum_partial(struct sync *sync, int layer, bool shared, real *gradient);

#endif
