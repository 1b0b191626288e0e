/* The CPU backend: OpenMP over rows and vectorised loops. Its files replace operations of the reference's
 * table; every function below exists for each instruction set (isa.h). */
#ifndef GDN_CPU_H
#define GDN_CPU_H

#include "kernels/cpu/isa.h"
#include "kernels/ops.h"

/* Fill the operations of the trunk and of the delta connections. */
void ISA_NAME(cpu_trunk)(struct ops *ops);
void ISA_NAME(cpu_delta)(struct ops *ops);

/* Of a full table: its matrix products, attention's among them, with operands in bf16; native: by the processor's
 * units for them, which it has, else in software. */
void ISA_NAME(cpu_bf16)(struct ops *ops, bool native);

/* Of a full table, in fp32 or bf16: all its products by rows (ops_by_rows); in bf16 it then holds weights. */
void ISA_NAME(cpu_by_rows)(struct ops *ops);

/* Multiply-adds ×2 a second of all threads on registers alone (peak.c). Takes about a tenth of a second. */
double ISA_NAME(cpu_peak)(void);

/* Parts of cpu_trunk, a file each. */
void ISA_NAME(cpu_vectors)(struct ops *ops);
void ISA_NAME(cpu_sources)(struct ops *ops);
void ISA_NAME(cpu_bf16_vectors)(struct ops *ops);
void ISA_NAME(cpu_gemm_rows)(struct ops *ops);
void ISA_NAME(cpu_norm)(struct ops *ops);
void ISA_NAME(cpu_attention)(struct ops *ops);
void ISA_NAME(cpu_attention_back)(struct ops *ops);
void ISA_NAME(cpu_swiglu)(struct ops *ops);
void ISA_NAME(cpu_cross_entropy)(struct ops *ops);

enum {
    /* Elements below which waking the other threads costs more than it saves: the `if` of parallel loops. It
     * does not depend on the number of threads, so it never changes a result. */
    PARALLEL_WORK = 16384,
    /* Elements of one piece of a long vector: a multiple of every vector width, so that the same elements
     * fall into the vectorised part of the loop however many threads share the pieces. */
    PIECE = 4096,
    /* Columns that one thread sums over all rows, and rows that are summed before they are added to the
     * total. */
    COLUMNS = 64,
    ROWS = 256,
};

/* The square root of the number type; sqrtf is what becomes one instruction. And its largest number. */
#ifdef GDN_DOUBLE
#define REAL_SQRT sqrt
#define REAL_MAX DBL_MAX
#else
#define REAL_SQRT sqrtf
#define REAL_MAX FLT_MAX
#endif

#endif
