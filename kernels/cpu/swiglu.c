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

/* One element; h as in the forward pass, to the bit. */
VECTOR_INLINE void back(real g, real u, real d, real *dg, real *du, real *h) {
    real s = vector_sigmoid(g);
    *dg = d * u * (s * (1 + g * (1 - s)));
    *du = d * (g * s);
    *h = g * s * u;
}

static void swiglu_back(long T, long F, const real *gu, const real *dh, real *dgu, real *h) {
#pragma omp parallel for schedule(static) if (T * F > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        const real *g = gu + t * 2 * F, *u = g + F, *d = dh + t * F;
        real *dg = dgu + t * 2 * F, *du = dg + F;
        if (h) {
            real *to = h + t * F;
#pragma omp simd
            for (long j = 0; j < F; j++) back(g[j], u[j], d[j], &dg[j], &du[j], &to[j]);
        } else {
#pragma omp simd
            for (long j = 0; j < F; j++) {
                real unused;
                back(g[j], u[j], d[j], &dg[j], &du[j], &unused);
            }
        }
    }
}

void ISA_NAME(cpu_swiglu)(struct ops *ops) {
    ops->swiglu = swiglu;
    ops->swiglu_back = swiglu_back;
}
