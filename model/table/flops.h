/* Arithmetic of a training step, counted from the shapes (a multiply and an add are two). */
#ifndef GDN_FLOPS_H
#define GDN_FLOPS_H

#include "dist/layout/edge.h"
#include "model/params/config.h"

/* Of one training step (forward and backward) per token: the GEMMs and attention's products at `length`, with
 * the active ones (NULL: all) of the configuration's edges. For model_flops_utilization and the benchmark. */
double model_flops_per_token(const struct model_config *config, const struct edges *edges,
                             const struct edge_set *active, long length);

/* The same of the forward pass, by parts: of every layer with its connections, out [num_layers], and of the
 * head (final norm and loss cost next to nothing, like the embedding). For cutting layers into pipeline
 * stages. */
void model_layer_flops(const struct model_config *config, const struct edges *edges,
                       const struct edge_set *active, long length, double *out);
double model_head_flops(const struct model_config *config);

#endif
