/* What a GPU's maker says it can do at most. */
#ifndef GDN_BENCH_NOMINAL_H
#define GDN_BENCH_NOMINAL_H

#include "kernels/ops.h"

/* Nominal peaks of the GPU that a device's description begins with (device.h, describe): FLOP/s of matrix
 * products in `precision`, without sparsity, and bytes/s of its memory. 0: not known here, or the GPU lacks
 * it. */
double nominal_flops(const char *description, enum precision precision);
double nominal_copy(const char *description);

#endif
