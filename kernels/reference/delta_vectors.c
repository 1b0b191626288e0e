/* Reference operations that work on whole deltas t − s: differences, norms, and contributions that gate the
 * delta itself (kinds `full` and `adaptive`). */
#include <math.h>
#include <stddef.h>

#include "kernels/reference/delta_parts.h"

static void delta_mean(long T, long D, const real *t, const real *s, real *delta, real *mean) {
    for (long i = 0; i < T * D; i++) {
        if (delta) delta[i] = t[i] - s[i];
        if (mean) mean[i] = (t[i] + s[i]) / 2;
    }
}

/* ‖t − s‖² of one row. */
static double square_distance(long D, const real *t, const real *s) {
    double sum = 0;
    for (long j = 0; j < D; j++) {
        double difference = (double)t[j] - s[j];
        sum += difference * difference;
    }
    return sum;
}

static void delta_inverse_norm(long T, long D, const real *t, const real *s, double eps, real *inv) {
    for (long i = 0; i < T; i++) {
        double norm = sqrt(square_distance(D, t + i * D, s + i * D));
        inv[i] = (real)(1 / (norm < eps ? eps : norm)); /* a NaN stays one */
    }
}

static void delta_spread(long T, long D, const real *d, const real *k, const real *t, const real *s, real *dt,
                         real *ds) {
    for (long i = 0; i < T; i++)
        for (long j = i * D; j < (i + 1) * D; j++) {
            real e = (d ? d[j] : 0) + (k ? k[i] * (t[j] - s[j]) : 0);
            dt[j] += e;
            ds[j] -= e;
        }
}

static void delta_magnitude(long T, long D, const real *t, const real *s, const real *r, double eps, real *e,
                            long lde, real *square) {
    for (long i = 0; i < T; i++) {
        double mean = square_distance(D, t + i * D, s + i * D) / (double)D;
        double factor = r ? r[i] : 1;
        e[i * lde] = (real)sqrt(factor * factor * mean + eps);
        square[i] = (real)mean;
    }
}

static void gated_delta(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                        const real *r, double scale, const real *weight, long ldw, bool add, real *out,
                        long ldo, real *rms) {
    for (long i = 0; i < T; i++) {
        double factor = scale * (r ? r[i] : 1), w = weight ? weight[i * ldw] : 1, squares = 0;
        for (long j = 0; j < D; j++) {
            double delta = (double)t[i * D + j] - s[i * D + j];
            double c = factor * delta * gate[i * ldg + j / (D / G)];
            real *o = &out[i * ldo + j];
            *o = (real)((add ? *o : 0) + w * c);
            squares += c * c;
        }
        if (rms) rms[i] = (real)sqrt(squares / (double)D + 1e-12);
    }
}

static void gated_delta_back(long T, long D, long G, const real *t, const real *s, const real *gate, long ldg,
                             const real *r, double scale, const real *weight, long ldw, const real *dout,
                             long ldo, const real *rms, double sparsity, real *dweight, long n, real *dgate,
                             real *dd, real *dr) {
    long group = D / G;
    for (long i = 0; i < T; i++) {
        double row = r ? r[i] : 1, w = weight ? weight[i * ldw] : 1;
        double k = rms && rms[i] != 0 ? sparsity / ((double)D * rms[i]) : 0; /* d rms / dc = c / (D·rms) */
        double sum_weight = 0, sum_row = 0;
        for (long g = 0; g < G; g++) {
            double value = gate[i * ldg + g], sum_gate = 0;
            for (long j = g * group; j < (g + 1) * group; j++) {
                double delta = (double)t[i * D + j] - s[i * D + j];
                double c = scale * row * delta * value;
                double dc = w * dout[i * ldo + j] + k * c;
                sum_weight += dout[i * ldo + j] * c;
                sum_row += dc * scale * delta * value;
                sum_gate += dc * scale * row * delta;
                dd[i * D + j] = (real)(row * scale * dc * value);
            }
            dgate[i * G + g] = (real)sum_gate;
        }
        dweight[i * n] = (real)sum_weight;
        if (r) dr[i] = (real)sum_row;
    }
}

void reference_delta_vectors(struct ops *ops) {
    ops->delta_mean = delta_mean;
    ops->delta_inverse_norm = delta_inverse_norm;
    ops->delta_spread = delta_spread;
    ops->delta_magnitude = delta_magnitude;
    ops->gated_delta = gated_delta;
    ops->gated_delta_back = gated_delta_back;
}
