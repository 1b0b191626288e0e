/* CPU operations of connections' columns of rows and weights of contributions: threads share the tokens. What
 * has one number a token and is summed in order stays the reference's. */
#include <string.h>

#include "kernels/cpu/delta_parts.h"

static void connection_weights(long T, long n, const real *alpha, long lda, long step, real even,
                               const real *mix, real *weight) {
#pragma omp parallel for schedule(static) if (T * n >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++)
            weight[t * n + i] = (alpha ? alpha[t * lda + i * step] : even) * (mix ? mix[i] : 1);
}

static void copy_columns(long T, long W, const real *x, long ldx, real *y, long ldy) {
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long t = 0; t < T; t++) memcpy(y + t * ldy, x + t * ldx, (size_t)W * sizeof *y);
}

static void add_columns(long T, long W, real factor, const real *x, long ldx, real *y, long ldy) {
#pragma omp parallel for schedule(static) if (T * W >= PARALLEL_WORK)
    for (long t = 0; t < T; t++)
#pragma omp simd
        for (long j = 0; j < W; j++) y[t * ldy + j] += factor * x[t * ldx + j];
}

void ISA_NAME(cpu_delta_rows)(struct ops *ops) {
    ops->connection_weights = connection_weights;
    ops->copy_columns = copy_columns;
    ops->add_columns = add_columns;
}
