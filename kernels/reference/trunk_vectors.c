/* Reference: matrix product, sums over vectors and rows, and the optimiser's update. */
#include <math.h>

#include "kernels/base/bf16.h"
#include "kernels/base/decay.h"
#include "kernels/base/hash.h"
#include "kernels/reference/trunk_parts.h"

static void gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda, const real *b,
                 long ldb, real beta, real *c, long ldc) {
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long p = 0; p < k; p++)
                sum += (double)(ta == 'N' ? a[i * lda + p] : a[p * lda + i]) *
                       (tb == 'N' ? b[p * ldb + j] : b[j * ldb + p]);
            real *to = &c[i * ldc + j];
            *to = (real)(beta == 0 ? alpha * sum : alpha * sum + beta * *to);
        }
}

static void zero(long n, real *x) {
    for (long i = 0; i < n; i++) x[i] = 0;
}

static void copy(long n, const real *x, real *y) {
    for (long i = 0; i < n; i++) y[i] = x[i];
}

static void round_bf16(long n, real *x) {
    for (long i = 0; i < n; i++) x[i] = bf16_round(x[i]);
}

static void add(long n, const real *x, real *y) {
    for (long i = 0; i < n; i++) y[i] += x[i];
}

static void add_to(long n, const real *x, const real *y, real *z) {
    for (long i = 0; i < n; i++) z[i] = x[i] + y[i];
}

static void scale(long n, const real *c, real *x) {
    for (long i = 0; i < n; i++) x[i] *= *c;
}

static void add_dot(long n, const real *x, const real *y, real *sum) {
    double total = 0;
    for (long i = 0; i < n; i++) total += (double)x[i] * y[i];
    *sum += (real)total;
}

static void add_column_sums(long T, long W, const real *x, long ldx, real *sum) {
    for (long j = 0; j < W; j++) {
        double total = 0;
        for (long t = 0; t < T; t++) total += x[t * ldx + j];
        sum[j] += (real)total;
    }
}

static void add_scaled_rows(long T, long D, const real *c, const real *x, real *y) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++) y[t * D + j] += c[t] * x[t * D + j];
}

static void add_sources(long T, long D, long n, long sums, const real *const *weight, long lda,
                        const real *const *x, const real *const *base, real *const *y) {
    for (long c = 0; c < sums; c++)
        for (long t = 0; t < T; t++)
            for (long j = 0; j < D; j++) {
                double sum = base[c][t * D + j];
                for (long i = 0; i < n; i++) sum += (double)weight[c][t * lda + i] * x[i][t * D + j];
                y[c][t * D + j] = (real)sum;
            }
}

static void source_back(long t, long D, long i, long sums, const real *const *weight, long lda, const real *x,
                        const real *const *dy, real *dx, real *const *dweight, long ldd) {
    for (long c = 0; c < sums; c++) {
        double sum = 0;
        for (long j = 0; j < D; j++) sum += (double)dy[c][t * D + j] * x[t * D + j];
        dweight[c][t * ldd + i] = (real)sum;
    }
    for (long j = 0; dx && j < D; j++) {
        double sum = dx[t * D + j];
        for (long c = 0; c < sums; c++) sum += (double)weight[c][t * lda + i] * dy[c][t * D + j];
        dx[t * D + j] = (real)sum;
    }
}

static void sources_back(long T, long D, long n, long sums, const real *const *weight, long lda,
                         const real *const *x, const real *const *dy, real *const *dx, real *const *dweight,
                         long ldd) {
    for (long t = 0; t < T; t++)
        for (long i = 0; i < n; i++)
            source_back(t, D, i, sums, weight, lda, x[i], dy, dx ? dx[i] : NULL, dweight, ldd);
}

static void dropout(long T, long W, const struct mask *mask, const real *x, long ldx, real *y, long ldy) {
    const real scale = (real)(1 / (1 - mask->p));
    for (long t = 0; t < T; t++) {
        uint64_t key = mask_row(mask->site, mask->head, mask->row + (uint64_t)t);
        for (long j = 0; j < W; j++) {
            bool kept = mask_bits(key, (uint32_t)(mask->column + (uint64_t)j)) >= mask_limit(mask->p);
            y[t * ldy + j] = kept ? x[t * ldx + j] * scale : 0;
        }
    }
}

static void add_squares(long first, long count, long grain, const real *x, double *square) {
    for (long i = first; i < first + count; i++) square[i / grain] += (double)x[i] * x[i];
}

static void add_hash(const real *x, long rows, long width, long ld, uint64_t index, uint64_t stride,
                     uint64_t *sum) {
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < width; c++)
            *sum += hash_element(x[r * ld + c], index + (uint64_t)r * stride + (uint64_t)c);
}

static void add_signs(long n, double c, const real *x, real *y) {
    for (long i = 0; i < n; i++) y[i] += (real)(c * ((x[i] > 0) - (x[i] < 0)));
}

static void add_absolutes(long n, const real *x, double *sum) {
    for (long i = 0; i < n; i++) *sum += fabs((double)x[i]);
}

static void add_parts(long count, int parts, const real *pieces, real *sum) {
    for (long i = 0; i < count; i++) {
        real total = pieces[i];
        for (int p = 1; p < parts; p++) total += pieces[p * count + i];
        sum[i] = total;
    }
}

static void max_parts(long count, int parts, const real *pieces, real *greatest) {
    for (long i = 0; i < count; i++) {
        real most = pieces[i];
        for (int p = 1; p < parts; p++) {
            const real other = pieces[p * count + i];
            if (other > most || isnan(other)) most = other;
        }
        greatest[i] = most;
    }
}

static void narrow(long count, const real *x, uint16_t *out) {
    for (long i = 0; i < count; i++) out[i] = bf16_of(x[i]);
}

static void widen(long rows, long width, const uint16_t *x, real *out, long ld) {
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < width; c++) out[r * ld + c] = from_bf16(x[r * width + c]);
}

static void add_narrow_parts(long count, int parts, const uint16_t *pieces, real *sum) {
    for (long i = 0; i < count; i++) {
        real total = from_bf16(pieces[i]);
        for (int p = 1; p < parts; p++) total += from_bf16(pieces[p * count + i]);
        sum[i] = total;
    }
}

static void adamw(long n, real *w, const real *g, real *m, real *v, double gscale, double lr, double beta1,
                  double beta2, double eps, double decay, bool cautious, double c1, double c2) {
    for (long i = 0; i < n; i++) {
        double gradient = g[i] * gscale;
        m[i] = (real)(beta1 * m[i] + (1 - beta1) * gradient);
        v[i] = (real)(beta2 * v[i] + (1 - beta2) * gradient * gradient);
        double decays = cautious && decay_opposed(m[i], w[i]) ? 0 : decay;
        w[i] = (real)(w[i] * (1 - lr * decays) - lr * (m[i] / c1) / (sqrt(v[i] / c2) + eps));
    }
}

static void nesterov(long n, real *g, real *m, double gscale, double momentum) {
    for (long i = 0; i < n; i++) {
        double gradient = g[i] * gscale;
        m[i] = (real)(momentum * m[i] + gradient);
        g[i] = (real)(gradient + momentum * m[i]);
    }
}

static void unit_norm(long n, const real *x, double eps, real *y) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (long i = 0; i < n; i++) y[i] = (real)(x[i] / (sqrt(sum) + eps));
}

static void descend(long n, real *w, const real *x, double rate, double decay, bool cautious) {
    for (long i = 0; i < n; i++) {
        double decays = cautious && decay_opposed(x[i], w[i]) ? 0 : decay;
        w[i] = (real)(w[i] * (1 - decays) - rate * x[i]);
    }
}

static void linear(int weight_id, char ta, char tb, long m, long n, long k, real alpha, const real *a,
                   long lda, const real *b, long ldb, real beta, real *c, long ldc) {
    (void)weight_id; /* nothing is scaled */
    gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void reference_trunk_vectors(struct ops *ops) {
    ops->gemm = gemm;
    ops->gemm_rows = gemm;
    ops->linear = linear;
    ops->zero = zero;
    ops->copy = copy;
    ops->round_bf16 = round_bf16;
    ops->add = add;
    ops->add_to = add_to;
    ops->scale = scale;
    ops->add_dot = add_dot;
    ops->add_signs = add_signs;
    ops->add_absolutes = add_absolutes;
    ops->add_column_sums = add_column_sums;
    ops->add_scaled_rows = add_scaled_rows;
    ops->add_sources = add_sources;
    ops->sources_back = sources_back;
    ops->dropout = dropout;
    ops->add_squares = add_squares;
    ops->add_hash = add_hash;
    ops->add_parts = add_parts;
    ops->max_parts = max_parts;
    ops->to_bf16 = narrow;
    ops->from_bf16 = widen;
    ops->add_parts_bf16 = add_narrow_parts;
    ops->adamw = adamw;
    ops->nesterov = nesterov;
    ops->unit_norm = unit_norm;
    ops->descend = descend;
}
