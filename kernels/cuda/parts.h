/* The files that make up the CUDA backend's table, each for its operations. */
#ifndef GDN_CUDA_PARTS_H
#define GDN_CUDA_PARTS_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

void cuda_vectors(struct ops *ops); /* zero, copy, add, add_to, scale, add_signs, adamw, nesterov … */
void cuda_sums(struct ops *ops);    /* sums over columns, ranks' pieces and whole vectors, add_dot, unit_norm */
void cuda_columns(struct ops *ops); /* copy_columns, add_columns, add_scaled_rows, squares, root_means, dropout */
void cuda_bf16(struct ops *ops);    /* to_bf16, from_bf16, add_parts_bf16 */
void cuda_sources(struct ops *ops); /* add_sources, sources_back */
void cuda_embed(struct ops *ops);
void cuda_norm(struct ops *ops);
void cuda_rope(struct ops *ops);
void cuda_swiglu(struct ops *ops);
void cuda_loss(struct ops *ops); /* cross_entropy, and its three steps */

void cuda_delta_vectors(struct ops *ops);    /* delta_mean … delta_magnitude */
void cuda_delta_rows(struct ops *ops);       /* row_factors, connection_weights */
void cuda_delta_gated(struct ops *ops);      /* gated_delta and its backward pass */
void cuda_delta_gates(struct ops *ops);      /* bias_silu, silu, sigmoid_gate, softmax_gate */
void cuda_delta_bottleneck(struct ops *ops); /* all connections' gates at once, scale_connections */
void cuda_delta_entropy(struct ops *ops);    /* entropies and gram_rms */
void cuda_delta_mixing(struct ops *ops);     /* select and multihead */
void cuda_depth_attention(struct ops *ops);
void cuda_streams(struct ops *ops); /* several residual streams */

void cuda_attention(struct ops *ops, enum precision precision);
void cuda_gemm(struct ops *ops, enum precision precision); /* gemm, linear */

#ifdef __cplusplus
}
#endif

#endif
