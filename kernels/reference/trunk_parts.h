/* Private to reference/: each function fills the operations of its file. */
#ifndef GDN_REFERENCE_TRUNK_PARTS_H
#define GDN_REFERENCE_TRUNK_PARTS_H

#include "kernels/reference/reference.h"

void reference_trunk_vectors(struct ops *ops);
void reference_trunk_layers(struct ops *ops);
void reference_trunk_attention(struct ops *ops);
void reference_bf16_attention(struct ops *ops); /* the same with products of bf16 */

#endif
