/* Reference operations of what connections have one number a token of: row factors of `normalize`, weights of
 * contributions (model.md 2 and 4), root mean squares; and columns of rows, for connections whose channels
 * are divided among ranks. */
#include <math.h>
#include <stddef.h>

#include "kernels/reference/delta_parts.h"

static void row_factors(long T, const real *gamma, const real *inv, real *r) {
    for (long t = 0; t < T; t++) r[t] = *gamma * inv[t];
}

static void row_factors_back(long T, const real *gamma, const real *inv, double eps, const real *dr, real *k,
                             real *dgamma) {
    real greatest = (real)(1 / eps);
    double sum = 0;
    for (long t = 0; t < T; t++) {
        sum += (double)dr[t] * inv[t];
        if (inv[t] < greatest) k[t] -= dr[t] * *gamma * inv[t] * inv[t] * inv[t];
    }
    *dgamma += (real)sum;
}

static void connection_weights(long T, long n, const real *alpha, long lda, long step, real even,
                               const real *mix, real *weight) {
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++)
            weight[t * n + i] = (alpha ? alpha[t * lda + i * step] : even) * (mix ? mix[i] : 1);
}

static void connection_weights_back(long T, long n, const real *alpha, long lda, long step, real even,
                                    const real *mix, const real *dweight, real *dmix, real *dalpha) {
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (long t = 0; t < T; t++) {
            real d = dweight[t * n + i];
            sum += (double)d * (alpha ? alpha[t * lda + i * step] : even);
            if (dalpha) dalpha[t * lda + i * step] = d * (mix ? mix[i] : 1);
        }
        if (dmix) dmix[i] += (real)sum;
    }
}

static void copy_columns(long T, long W, const real *x, long ldx, real *y, long ldy) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < W; j++) y[t * ldy + j] = x[t * ldx + j];
}

static void add_columns(long T, long W, real factor, const real *x, long ldx, real *y, long ldy) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < W; j++) y[t * ldy + j] += factor * x[t * ldx + j];
}

static void add_up(long n, const real *x, double *sum) {
    for (long i = 0; i < n; i++) *sum += x[i];
}

static void squares(long n, real *x) {
    for (long i = 0; i < n; i++) x[i] *= x[i];
}

static void root_means(long n, long parts, real *x) {
    for (long i = 0; i < n; i++) x[i] = (real)sqrt((double)x[i] / (double)parts);
}

static void delta_magnitude_back(long T, long D, const real *r, const real *e, const real *square,
                                 const real *de, real *k, real *dr) {
    for (long t = 0; t < T; t++) {
        real factor = r ? r[t] : 1, slope = de[t] / e[t];
        k[t] = slope * factor * factor / (real)D;
        if (r) dr[t] += slope * factor * square[t];
    }
}

void reference_delta_rows(struct ops *ops) {
    ops->row_factors = row_factors;
    ops->row_factors_back = row_factors_back;
    ops->connection_weights = connection_weights;
    ops->connection_weights_back = connection_weights_back;
    ops->copy_columns = copy_columns;
    ops->add_columns = add_columns;
    ops->add_up = add_up;
    ops->squares = squares;
    ops->root_means = root_means;
    ops->delta_magnitude_back = delta_magnitude_back;
}
