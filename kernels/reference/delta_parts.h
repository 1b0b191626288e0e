/* The files that make up reference_delta(); each fills the operations it implements. */
#ifndef GDN_REFERENCE_DELTA_PARTS_H
#define GDN_REFERENCE_DELTA_PARTS_H

#include "kernels/ops.h"

void reference_delta_vectors(struct ops *ops); /* t − s itself: delta_mean … gated_delta_back */
void reference_delta_rows(struct ops *ops);    /* numbers a token: factors, weights, sums; columns of rows */
void reference_delta_gates(struct ops *ops);   /* bottleneck, sigmoid and softmax gates */
void reference_delta_entropy(struct ops *ops); /* gate entropies and the norm of bottleneck contributions */
void reference_delta_mixing(struct ops *ops);  /* weights among connections: select and multihead */
void reference_depth_attention(struct ops *ops);
void reference_streams(struct ops *ops); /* several residual streams */

#endif
