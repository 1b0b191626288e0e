/* The CPU backend's trunk: which file fills which operations. The embedding's copy and the rest below are
 * short loops that only need their rows shared among the threads. */
#include <omp.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"

static void embed(long T, long D, const int32_t *token, long first, long V, const real *E, real *x) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        long row = token[t] - first;
        if (row >= 0 && row < V)
            memcpy(x + t * D, E + row * D, (size_t)D * sizeof(real));
        else
            memset(x + t * D, 0, (size_t)D * sizeof(real));
    }
}

/* Each thread owns a range of columns, so a token that occurs twice is summed by one thread, in order. */
static void embed_back(long T, long D, const int32_t *token, long first, long V, const real *dx, real *dE) {
#pragma omp parallel for schedule(static) if (T * D > PARALLEL_WORK)
    for (long at = 0; at < D; at += COLUMNS) {
        long width = D - at < COLUMNS ? D - at : COLUMNS;
        for (long t = 0; t < T; t++) {
            long row = token[t] - first;
            if (row < 0 || row >= V) continue;
            const real *from = dx + t * D + at;
            real *to = dE + row * D + at;
#pragma omp simd
            for (long j = 0; j < width; j++) to[j] += from[j];
        }
    }
}

static void rope(long T, long S, long position, const int32_t *start, long heads, long hd, const real *cosine,
                 const real *sine, int direction, real *x, long ldx) {
    long half = hd / 2;
    real sign = (real)direction;
#pragma omp parallel for schedule(static) if (T * heads * hd > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        long at = position + t % S - (start ? start[t] : 0);
        const real *c = cosine + at * half, *s = sine + at * half;
        for (long h = 0; h < heads; h++) {
            real *low = x + t * ldx + h * hd, *high = low + half;
#pragma omp simd
            for (long j = 0; j < half; j++) {
                real a = low[j], b = high[j], turn = sign * s[j];
                low[j] = a * c[j] - b * turn;
                high[j] = b * c[j] + a * turn;
            }
        }
    }
}

static void linear(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                   long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    (void)weight_id; /* nothing is scaled */
    gemm_library(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void ISA_NAME(cpu_trunk)(struct ops *ops) {
    ops->gemm = gemm_library;
    ops->linear = linear;
    ops->embed = embed;
    ops->embed_back = embed_back;
    ops->rope = rope;
    ISA_NAME(cpu_vectors)(ops);
    ISA_NAME(cpu_sources)(ops);
    ISA_NAME(cpu_bf16_vectors)(ops);
    ISA_NAME(cpu_gemm_rows)(ops);
    ISA_NAME(cpu_norm)(ops);
    ISA_NAME(cpu_swiglu)(ops);
    ISA_NAME(cpu_cross_entropy)(ops);
    ISA_NAME(cpu_attention)(ops);
    ISA_NAME(cpu_attention_back)(ops);
}
