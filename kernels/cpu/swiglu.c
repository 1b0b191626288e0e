/* CPU backend: the MLP's gate, h = silu(g) ⊙ u, in one pass each way. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector_math.h"

static void swiglu(long T, long F, const real *gu, real *h) {
#pragma omp parallel for schedule(static) if (T * F > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        const real *g = gu + t * 2 * F, *u = g + F;
        real *to = h + t * F;
#pragma omp simd
        for (long j = 0; j < F; j++) to[j] = vector_silu(g[j]) * u[j];
    }
}

static void swiglu_back(long T, long F, const real *gu, const real *dh, real *dgu, real *h) {
#pragma omp parallel for schedule(static) if (T * F > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        const real *g = gu + t * 2 * F, *u = g + F, *d = dh + t * F;
        real *dg = dgu + t * 2 * F, *du = dg + F;
#pragma omp simd
        for (long j = 0; j < F; j++) {
            real s = vector_sigmoid(g[j]);
            dg[j] = d[j] * u[j] * (s * (1 + g[j] * (1 - s)));
            du[j] = d[j] * (g[j] * s);
        }
        if (!h) continue;
        real *to = h + t * F;
#pragma omp simd
        for (long j = 0; j < F; j++) to[j] = vector_silu(g[j]) * u[j];
    }
}

void ISA_NAME(cpu_swiglu)(struct ops *ops) {
    ops->swiglu = swiglu;
    ops->swiglu_back = swiglu_back;
}
