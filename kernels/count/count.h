/* The counting backend: operations that do nothing but add up arithmetic. With it and a model without memory,
 * the passes themselves tell a plan what they cost. Buffers may be NULL. */
#ifndef GDN_COUNT_H
#define GDN_COUNT_H

#include "kernels/ops.h"

extern const struct ops count_ops;

/* Arithmetic (a multiply and an add are two) of all calls since the program began, so that the difference
 * between two moments is what lies in between: matrix products, and those of attention's causal half. */
double count_flops(void);

#endif
