/* Measured speed (gdn bench): this machine's ceilings, single operations, and whole training steps against
 * the time of their matrix products alone. */
#ifndef GDN_BENCH_H
#define GDN_BENCH_H

#include <stdbool.h>

#include "kernels/ops.h"
#include "model/model.h"
#include "train/config.h"

/* What the machine reached in this run, with the threads in use. */
struct ceilings {
    double arithmetic; /* FLOP/s of multiply-adds on registers (ops_peak) */
    double gemm;       /* FLOP/s of the best of a few large square matrix products */
    double copy;       /* bytes/s, read plus written, of copying much more than the caches hold */
};

/* Seconds on a clock that only runs forward. */
double bench_now(void);

/* The middle of `count` times, which are sorted in place. */
double bench_median(double *seconds, int count);

void bench_ceilings(const struct ops *ops, struct ceilings *out);

/* Times every operation at the shapes that the configuration's model and micro-batch give it; one line each.
 * Fails (GDN_INTERNAL) without memory. */
int bench_operations(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                     bool json);

/* Times whole training steps (forward, backward, clipping, AdamW) on random tokens for about `seconds`, and
 * the same steps' matrix products one by one; one line. Fails (GDN_INTERNAL) without memory. */
int bench_steps(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                enum form form, double seconds, bool json);

/* Times training steps with train.recompute none, selective, full and auto in turn for about `seconds`,
 * beside the memory that each keeps; a line each. auto may use train.memory, or without it half of what
 * recomputing everything would save. Fails (GDN_INTERNAL) without memory. */
int bench_recompute(const struct ops *ops, const struct config *config, double seconds, bool json);

#endif
