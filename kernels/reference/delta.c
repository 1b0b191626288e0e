/* Entry of the reference's delta connections (model.md 3 to 5): sums are formed in double, one line of
 * mathematics is one line of C, and speed does not count. */
#include "kernels/reference/delta_parts.h"
#include "kernels/reference/reference.h"

void reference_delta(struct ops *ops) {
    reference_delta_vectors(ops);
    reference_delta_rows(ops);
    reference_delta_gates(ops);
    reference_delta_entropy(ops);
    reference_delta_mixing(ops);
    reference_depth_attention(ops);
    reference_streams(ops);
}
