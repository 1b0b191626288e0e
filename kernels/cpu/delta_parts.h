/* The files that make up cpu_delta(), each for its operations, as in kernels/reference/delta_parts.h. */
#ifndef GDN_CPU_DELTA_PARTS_H
#define GDN_CPU_DELTA_PARTS_H

#include "kernels/cpu/cpu.h"

void ISA_NAME(cpu_delta_vectors)(struct ops *ops);    /* delta_mean … delta_magnitude */
void ISA_NAME(cpu_delta_rows)(struct ops *ops);       /* connection_weights, columns of rows */
void ISA_NAME(cpu_delta_gated)(struct ops *ops);      /* gated_delta and its backward pass */
void ISA_NAME(cpu_delta_gates)(struct ops *ops);      /* bias_silu, silu, sigmoid_gate, softmax_gate */
void ISA_NAME(cpu_delta_bottleneck)(struct ops *ops); /* all connections' gates at once, scale_connections */
void ISA_NAME(cpu_delta_entropy)(struct ops *ops);    /* entropies and gram_rms */
void ISA_NAME(cpu_delta_mixing)(struct ops *ops);     /* select and multihead */
void ISA_NAME(cpu_depth_attention)(struct ops *ops);
void ISA_NAME(cpu_streams)(struct ops *ops); /* several residual streams */

#endif
