/* Measured speed (gdn bench): a device's ceilings, single operations, and whole training steps against
 * the time of their matrix products alone. */
#ifndef GDN_BENCH_H
#define GDN_BENCH_H

#include <stdbool.h>

#include "kernels/base/arena.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "train/config/config.h"

/* What the device reached in this run, of the host with the threads in use. */
struct ceilings {
    double arithmetic; /* FLOP/s: of the host multiply-adds on registers, measured (ops_peak); of a GPU its
                          nominal peak in the precision. 0: not known */
    double memory;     /* bytes/s: nominal, of a GPU. 0: not known */
    double gemm;       /* FLOP/s of the best of a few large square matrix products, in the precision */
    double copy;       /* bytes/s, read plus written, of copying much more than the caches hold */
};

/* How long to repeat what is measured, in seconds; 0: a few times only. */
struct bench_seconds {
    double step;      /* whole steps, all together */
    double operation; /* each operation, about */
};

/* Measures them. Fails (GDN_INTERNAL) without memory, or with the device. */
int bench_ceilings(const struct ops *ops, const struct bench_seconds *spend, struct ceilings *out);

/* What is measured: device, precision and ceilings, before anything else. */
void bench_print_machine(const struct ops *ops, const struct ceilings *ceilings, bool json);

/* The next `count` elements of an arena; once it has memory, filled with numbers for which no operation is
 * special. */
real *bench_take(struct arena *arena, long count);

/* Times every operation at the shapes that the configuration's model and micro-batch give it; one line each.
 * Fails (GDN_INTERNAL) without memory, or with the device. */
int bench_operations(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                     const struct bench_seconds *spend, bool json);

/* Times whole training steps (forward, backward, clipping, update) on random tokens, and the same steps'
 * matrix products one by one; one line. Fails likewise. */
int bench_steps(const struct ops *ops, const struct config *config, const struct ceilings *ceilings,
                enum projection_way projection, const struct bench_seconds *spend, bool json);

/* Times training steps with train.recompute none, selective, full and auto in turn, beside the memory that
 * each keeps; a line each. auto may use train.memory, or without it half of what recomputing everything would
 * save. Fails likewise. */
int bench_recompute(const struct ops *ops, const struct config *config, const struct bench_seconds *spend,
                    bool json);

#endif
