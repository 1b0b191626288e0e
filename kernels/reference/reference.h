/* The reference backend: plain, obvious C for every operation, one thread, sums in double. It is what the
 * other backends are tested against, and what an operation falls back to where they have nothing faster. */
#ifndef GDN_REFERENCE_H
#define GDN_REFERENCE_H

#include "kernels/ops.h"

/* Fill the operations of the trunk and of the delta connections. */
void reference_trunk(struct ops *ops);
void reference_delta(struct ops *ops);

/* Of a full table: its matrix products with operands in bf16. */
void reference_bf16(struct ops *ops);

#endif
