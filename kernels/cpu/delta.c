/* Entry of the CPU's delta connections. Rows (tokens) are shared among the threads and a row never depends
 * on another one, so all operations give the same bits for every thread count; sums over rows use fixed
 * chunks. */
#include "kernels/cpu/delta_parts.h"

void ISA_NAME(cpu_delta)(struct ops *ops) {
    ISA_NAME(cpu_delta_vectors)(ops);
    ISA_NAME(cpu_delta_rows)(ops);
    ISA_NAME(cpu_delta_gated)(ops);
    ISA_NAME(cpu_delta_gates)(ops);
    ISA_NAME(cpu_delta_bottleneck)(ops);
    ISA_NAME(cpu_delta_entropy)(ops);
    ISA_NAME(cpu_delta_mixing)(ops);
    ISA_NAME(cpu_depth_attention)(ops);
    ISA_NAME(cpu_streams)(ops);
}
