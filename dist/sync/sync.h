/* Gradient synchronisation: sums buckets of the gradient over all copies and gathers updated weights,
 * while other work goes on (dist/layout/shard.h; actions of dist/schedule/schedule.h).
 *
 * Of a sharded bucket every rank sends each other rank its part and adds the parts that it receives in
 * rank order; after the update the parts are gathered (dist/comm/async_op.h). Of any other bucket the sums
 * are gathered too, so that all ranks have all of them. Sums are made in the same order, with the same
 * bits, whatever the bucket or zone. Where copies have groups (shard.h) each group adds up first, then the groups'
 * sums: less goes between groups (buckets.c). Gradients of `partial` rows (table.h) are first summed over the
 * tensor axis, all of a layer's at once.
 *
 * Functions return a status and are collective over the axes they sum over, in the same order on every
 * rank. At most SYNC_IN_FLIGHT buckets are being reduced at a time. */
#ifndef GDN_SYNC_H
#define GDN_SYNC_H

#include "dist/mesh/mesh.h"
#include "dist/layout/shard.h"

struct sync; /* opaque; owns scratch of SYNC_IN_FLIGHT buckets on the device */

/* `table`, `shards` and the mesh outlive it. Collective over all ranks (it duplicates communicators, so that
 * what is under way meets no other call). GDN_INTERNAL without memory. *bytes (NULL: not wanted): of the
 * scratch. Also reserves the tensor axis's scratch for partial rows. */
int sync_create(struct mesh *mesh, const struct table *table, const struct shards *shards, struct sync **out,
                int64_t *bytes);
void sync_free(struct sync *sync);

/* ACT_SHARE: sums the rows of ZONE_SHARED_… over the pipeline ranks that hold them, by rising rank; all of
 * them get the sum. Then sums the partial ones among them over the tensor axis. */
int sync_share(struct sync *sync, real *gradient);

/* Sums the partial rows of all layers from `layer` up over the tensor axis, but for those of ZONE_SHARED_…
 * (which sync_share sums) and those that were summed before in this step. The gradients of these layers are
 * complete. sync_reduce does so for the layers of its bucket. But where tensor ranks' tables differ in length
 * (an uneven vocabulary, tensor ranks with whole connections), their buckets may become complete at different
 * layers: whoever reduces buckets during a backward pass calls this after each layer, so that all tensor
 * ranks sum at the same place. */
int sync_partial(struct sync *sync, int layer, real *gradient);

/* ACT_REDUCE and ACT_FINISH of one bucket: afterwards its own part (not sharded: all of it) holds the sum. */
int sync_reduce(struct sync *sync, int bucket, real *gradient);
int sync_finish(struct sync *sync, int bucket, real *gradient);

/* ACT_GATHER and ACT_GATHERED: the own part of `weight` to all, and theirs here. Nothing for a bucket that is
 * not sharded. */
int sync_gather(struct sync *sync, int bucket, real *weight);
int sync_gathered(struct sync *sync, int bucket);

/* Lets what is under way move on. Called between a backward pass's layers. */
int sync_progress(struct sync *sync);

/* Bytes that a rank hands over in one step for a bucket's sum and gather (copies), and for partial rows
 * (tensor axis) and shared rows (pipeline axis) of all of a table. For the plan. */
int64_t sync_formula_bucket(const struct bucket *bucket, int copies, int index);
/* Of a bucket's sum, or its gather, the bytes that stay within a group of copies. */
int64_t sync_formula_within(const struct bucket *bucket, int group);
int64_t sync_formula_partial(const struct table *table, int tensor, int index);
int64_t sync_formula_shared(const struct table *table, int pipeline_index);
/* Elements of the longest sum of partial rows, which the tensor axis needs scratch for (axis_reserve). */
long sync_longest_partial(const struct table *table);
/* Bytes of a rank's scratch, as sync_create gives them. */
int64_t sync_formula_scratch(const struct table *table, const struct shards *shards, int copies, int tensor);

#endif
