/* CPU backend: loss and its gradient, row by row. A row stays in the nearest caches between its passes:
 * largest logit, exponentials and their sum, and, for the gradient, the scaling. */
#include <math.h>

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

static void cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, double scale,
                          real *loss) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        real *row = logits + t * ld, right = row[target[t]], largest = largest_of(V, row);
        double sum = sum_exp(V, row, largest, scale != 0);
        loss[t] = (real)(log(sum) + ((double)largest - (double)right));
        if (scale == 0) continue;
        real factor = (real)(scale / sum);
#pragma omp simd
        for (long v = 0; v < V; v++) row[v] *= factor;
        row[target[t]] -= (real)scale;
    }
}

static void row_largest(long T, long V, const real *logits, long ld, real *largest) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) largest[t] = largest_of(V, logits + t * ld);
}

static void part_exp(long T, long V, real *logits, long ld, const int32_t *target, long first,
                     const real *largest, real *sums) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        real *row = logits + t * ld;
        long right = target[t] - first;
        sums[T + t] = right >= 0 && right < V ? row[right] - largest[t] : 0;
        sums[t] = (real)sum_exp(V, row, largest[t], true);
    }
}

static void part_cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, long first,
                               const real *sums, double scale, real *loss) {
#pragma omp parallel for schedule(static) if (T * V > PARALLEL_WORK)
    for (long t = 0; t < T; t++) {
        loss[t] = (real)(log((double)sums[t]) - (double)sums[T + t]);
        if (scale == 0) continue;
        real *row = logits + t * ld, factor = (real)(scale / (double)sums[t]);
        long right = target[t] - first;
#pragma omp simd
        for (long v = 0; v < V; v++) row[v] *= factor;
        if (right >= 0 && right < V) row[right] -= (real)scale;
    }
}

void ISA_NAME(cpu_cross_entropy)(struct ops *ops) {
    ops->cross_entropy = cross_entropy;
    ops->row_largest = row_largest;
    ops->part_exp = part_exp;
    ops->part_cross_entropy = part_cross_entropy;
}
