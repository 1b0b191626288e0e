/* The floor of a training step: its matrix products, recorded as it runs and timed one by one. */
#ifndef GDN_BENCH_PRODUCTS_H
#define GDN_BENCH_PRODUCTS_H

#include "kernels/ops.h"

/* Puts a recorder into the operations of `table`, a copy of `ops`, or takes it out again. One at a time. */
void products_record(const struct ops *ops, struct ops *table);
void products_stop(struct ops *table);

/* Times what was recorded, each shape alone on buffers of its own for about `enough` seconds. Seconds and
 * arithmetic of all. Fails (GDN_INTERNAL) without memory. */
int products_time(double enough, double *seconds, double *flops);

#endif
