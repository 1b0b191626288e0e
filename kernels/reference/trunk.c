/* The reference's trunk: which file fills which operations. */
#include "kernels/reference/trunk_parts.h"

void reference_trunk(struct ops *ops) {
    reference_trunk_vectors(ops);
    reference_trunk_layers(ops);
    reference_trunk_attention(ops);
}
