/* Private to reference/trunk*.c: each function fills the operations of its file. */
#ifndef GDN_REFERENCE_TRUNK_PARTS_H
#define GDN_REFERENCE_TRUNK_PARTS_H

#include "kernels/reference/reference.h"

void reference_trunk_vectors(struct ops *ops);
void reference_trunk_layers(struct ops *ops);
void reference_trunk_attention(struct ops *ops);

#endif
