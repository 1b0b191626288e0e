/* What a rank has to save, copied at one moment, so that training can change it while it is written. The
 * checksums that the file will carry (data/hdf5/sum.h) are computed from the original in the same pass over
 * memory that copies it: a copy that went wrong is found when the written file is read back.
 *
 * On the host the copy has this rank's own pieces alone: weights, in the places of the moments, and the
 * optimiser's moments. Where the state lies on a device, `mirror` is the copy, which the caller has filled,
 * and the device computes the checksums. Private to dist/ and to train's saver. */
#ifndef GDN_CHECKPOINT_SNAPSHOT_H
#define GDN_CHECKPOINT_SNAPSHOT_H

#include "dist/checkpoint/checkpoint.h"
#include "kernels/ops.h"

struct snapshot; /* opaque */

/* For a state in the memory of `ops`'s device, of the tables and shards (there must be some) of `live`;
 * `mirror`: NULL, or the state on the host that device memory is copied to. Reserves all that snapshots need.
 * What `live` and `mirror` point to outlives it. Not collective. GDN_INTERNAL without memory. snapshot_free.
 */
int snapshot_create(const struct mesh *mesh, const struct ops *ops, const struct checkpoint_content *live,
                    struct state *mirror, struct snapshot **out);
/* NULL is allowed. */
void snapshot_free(struct snapshot *snapshot);

/* Copies the state, and scales and spikes of `live`, on all of OpenMP's threads. Not collective. GDN_INTERNAL
 * where the device failed. */
int snapshot_take(struct snapshot *snapshot, const struct checkpoint_content *live);

/* For checkpoint_save: as of the last snapshot_take. Owned by the snapshot. */
const struct checkpoint_content *snapshot_content(const struct snapshot *snapshot);

/* Bytes that one on the host reserves for a rank's table and shards. And what this has. */
int64_t snapshot_planned(const struct table *table, const struct shards *shards);
int64_t snapshot_reserved(const struct snapshot *snapshot);

#endif
