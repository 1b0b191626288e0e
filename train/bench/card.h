/* What a card's maker says it can do at most. */
#ifndef GDN_BENCH_CARD_H
#define GDN_BENCH_CARD_H

#include "kernels/ops.h"

/* Nominal peaks of the card that a device's description begins with (device.h, describe): FLOP/s of matrix
 * products in `precision`, without sparsity, and bytes/s of its memory. 0: not known here, or the card lacks
 * it. */
double card_flops(const char *description, enum precision precision);
double card_copy(const char *description);

#endif
