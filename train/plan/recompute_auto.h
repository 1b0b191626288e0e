/* The recomputation that costs least and lets a pipeline rank's memory fit. */
#ifndef GDN_RECOMPUTE_AUTO_H
#define GDN_RECOMPUTE_AUTO_H

#include "train/plan/rank_plan.h"
#include "train/plan/recompute.h"

/* Replaces what train.recompute and recompute_delta leave open for the layers of one pipeline rank, in
 * `policy` [num_layers], which comes as recompute_fixed fills it. All ranks of that pipeline index choose
 * alike: the choice looks at all tensor indices. Where nothing fits into `available` bytes, it is the one
 * that takes least. *ratio: memory with nothing of that computed again over `available`, of the tensor index
 * that needs most. Not collective. GDN_INTERNAL. */
int recompute_auto(const struct rank_work *work, int pipeline, int64_t available, struct recompute *policy,
                   double *ratio);

#endif
