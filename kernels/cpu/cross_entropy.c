/* CPU backend: loss and its gradient, row by row. A row stays in the nearest caches between its passes:
 * largest logit, exponentials and their sum, and, for the gradient, the scaling. Of capped logits the
 * gradient's pass needs the logits themselves, so that it computes their exponentials again. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector_math.h"

enum { BLOCK = 1024 }; /* columns summed in `real` before they are added up in double */

static inline real largest_of(long V, const real *row) {
    real largest = -INFINITY;
#pragma omp simd reduction(max : largest)
    for (long v = 0; v < V; v++) largest = row[v] > largest ? row[v] : largest;
    return largest;
}

/* Σ exp(row − largest); the exponentials are kept in `row` where `keep`. */
static inline double sum_exp(long V, real *row, real largest, bool keep) {
    double total = 0;
    for (long first = 0; first < V; first += BLOCK) {
        long end = first + BLOCK < V ? first + BLOCK : V;
        real sum = 0;
        if (keep) {
#pragma omp simd reduction(+ : sum)
            for (long v = first; v < end; v++) {
                row[v] = vector_exp(row[v] - largest);
                sum += row[v];
            }
        } else {
#pragma omp simd reduction(+ : sum)
            for (long v = first; v < end; v++) sum += vector_exp(row[v] - largest);
        }
        total += (double)sum;
    }
    return total;
}

static void softcap(long T, long V, real *logits, long ld, double cap) {
    const real by = (real)(1 / cap), to = (real)cap;
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        real *row = logits + t * ld;
#pragma omp simd
        for (long v = 0; v < V; v++) row[v] = to * vector_tanh(by * row[v]);
    }
}

/* The gradient in place of exponentials: factor times them, less `scale` for the target (−1: elsewhere). */
static inline void gradient_of(long V, real *row, real factor, long target, double scale) {
#pragma omp simd
    for (long v = 0; v < V; v++) row[v] *= factor;
    if (target >= 0) row[target] -= (real)scale;
}

/* In place of capped logits, of which the target's is `right`. */
static inline void capped_gradient_of(long V, real *row, real largest, double cap, real factor, long target,
                                      real right, double scale) {
    const real by = (real)(1 / cap);
#pragma omp simd
    for (long v = 0; v < V; v++) {
        real part = by * row[v];
        row[v] = factor * vector_exp(row[v] - largest) * (1 - part * part);
    }
    if (target >= 0) row[target] -= (real)scale * (1 - by * right * (by * right));
}

/* A token that does not count. */
static void leave_out(long V, real *row, double scale, real *loss, real *square) {
    *loss = 0;
    if (square) *square = 0;
    if (scale != 0) memset(row, 0, (size_t)V * sizeof *row);
}

static void cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, double cap, double z,
                          double scale, real *loss, real *squares) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        if (target[t] < 0) {
            leave_out(V, logits + t * ld, scale, loss + t, squares ? squares + t : NULL);
            continue;
        }
        real *row = logits + t * ld, right = row[target[t]], largest = largest_of(V, row);
        double sum = sum_exp(V, row, largest, scale != 0 && cap == 0), lse = log(sum) + (double)largest;
        loss[t] = (real)(log(sum) + ((double)largest - (double)right));
        if (squares) squares[t] = (real)(lse * lse);
        if (scale == 0) continue;
        real factor = (real)(scale / sum * (1 + 2 * z * lse));
        if (cap == 0)
            gradient_of(V, row, factor, target[t], scale);
        else
            capped_gradient_of(V, row, largest, cap, factor, target[t], right, scale);
    }
}

static void row_largest(long T, long V, const real *logits, long ld, real *largest) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) largest[t] = largest_of(V, logits + t * ld);
}

static void part_exp(long T, long V, real *logits, long ld, const int32_t *target, long first,
                     const real *largest, double cap, real *sums) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        real *row = logits + t * ld;
        long right = target[t] - first;
        sums[T + t] = right >= 0 && right < V ? row[right] - largest[t] : 0;
        sums[t] = (real)sum_exp(V, row, largest[t], cap == 0);
    }
}

static void part_cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, long first,
                               const real *largest, const real *sums, double cap, double z, double scale,
                               real *loss, real *squares) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        if (target[t] < 0) {
            leave_out(V, logits + t * ld, scale, loss + t, squares ? squares + t : NULL);
            continue;
        }
        double sum = (double)sums[t], lse = log(sum) + (double)largest[t];
        loss[t] = (real)(log(sum) - (double)sums[T + t]);
        if (squares) squares[t] = (real)(lse * lse);
        if (scale == 0) continue;
        real *row = logits + t * ld, factor = (real)(scale / sum * (1 + 2 * z * lse));
        long right = target[t] - first;
        if (right >= V || right < 0) right = -1;
        if (cap == 0)
            gradient_of(V, row, factor, right, scale);
        else
            capped_gradient_of(V, row, largest[t], cap, factor, right, right < 0 ? 0 : row[right], scale);
    }
}

void ISA_NAME(cpu_cross_entropy)(struct ops *ops) {
    ops->softcap = softcap;
    ops->cross_entropy = cross_entropy;
    ops->row_largest = row_largest;
    ops->part_exp = part_exp;
    ops->part_cross_entropy = part_cross_entropy;
}
