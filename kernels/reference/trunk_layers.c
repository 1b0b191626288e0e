/* Reference: embedding, norm, rotary embedding, MLP activation and loss. */
#include <math.h>

#include "kernels/base/marks.h"
#include "kernels/reference/trunk_parts.h"

static bool has(long token, long first, long V) {
    return token >= first && token < first + V;
}

static void cut_tokens(long B, long S, const int32_t *rows, int32_t *input, int32_t *target, int32_t *start,
                       real *counts) {
    for (long b = 0; b < B; b++) {
        int32_t first = 0;
        for (long s = 0; s < S; s++) {
            const int32_t *row = rows + b * (S + 1) + s;
            if (row[0] & MARK_DOCUMENT) first = (int32_t)s;
            if (input) input[b * S + s] = row[0] & MARK_TOKEN;
            if (target) target[b * S + s] = row[1] & MARK_UNCOUNTED ? -1 : row[1] & MARK_TOKEN;
            if (start) start[b * S + s] = first;
            if (counts) counts[b * S + s] = row[0] & MARK_PADDING ? 0 : 1;
        }
    }
}

static void embed(long T, long D, const int32_t *token, long first, long V, const real *E, real *x) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++)
            x[t * D + j] = has(token[t], first, V) ? E[(token[t] - first) * D + j] : 0;
}

static void embed_back(long T, long D, const int32_t *token, long first, long V, const real *dx, real *dE) {
    for (long t = 0; t < T; t++)
        for (long j = 0; has(token[t], first, V) && j < D; j++)
            dE[(token[t] - first) * D + j] += dx[t * D + j];
}

static void rms_norm(long T, long D, const real *x, const real *w, double eps, real *y, real *rstd) {
    for (long t = 0; t < T; t++) {
        double square = 0;
        for (long j = 0; j < D; j++) square += (double)x[t * D + j] * x[t * D + j];
        double r = 1 / sqrt(square / D + eps);
        for (long j = 0; j < D; j++) y[t * D + j] = (real)(x[t * D + j] * r * w[j]);
        rstd[t] = (real)r;
    }
}

static void add_rms_norm(long T, long D, const real *x, const real *r, const real *w, double eps, real *sum,
                         real *y, real *rstd) {
    for (long i = 0; i < T * D; i++) sum[i] = x[i] + r[i];
    rms_norm(T, D, sum, w, eps, y, rstd);
}

static void row_rstd(long T, long D, const real *x, double eps, real *rstd) {
    for (long t = 0; t < T; t++) {
        double square = 0;
        for (long j = 0; j < D; j++) square += (double)x[t * D + j] * x[t * D + j];
        rstd[t] = (real)(1 / sqrt(square / (double)D + eps));
    }
}

static void row_rstd_back(long T, long D, const real *rstd, const real *drstd, real *k) {
    for (long t = 0; t < T; t++) k[t] = (real)(-(double)drstd[t] * rstd[t] * rstd[t] * rstd[t] / (double)D);
}

/* Element i of s − p; of w + a column j of a token's. */
static double less(const real *s, const real *p, long i) {
    return (double)s[i] - (p ? (double)p[i] : 0);
}
static double weight(long D, long G, const real *w, const real *a, long j) {
    return (double)w[j] + (a ? (double)a[j / (D / G)] : 0);
}

static void add_norms(long T, long D, long G, long n, const real *const *s, const real *const *p,
                      const real *w, const real *a, long lda, double eps, real *y, real *rstd) {
    for (long i = 0; i < n; i++)
        for (long t = 0; t < T; t++) {
            const real *before = p ? p[i] : NULL, *at = a ? a + t * lda + i * G : NULL;
            double square = 0;
            for (long j = 0; j < D; j++) square += pow(less(s[i], before, t * D + j), 2);
            real r = rstd[i * T + t] = (real)(1 / sqrt(square / (double)D + eps));
            for (long j = 0; j < D; j++)
                y[t * D + j] +=
                    (real)(weight(D, G, w + i * D, at, j) * less(s[i], before, t * D + j) * (double)r);
        }
}

/* With u = w ⊙ dy: dx += rstd·u − x·rstd³·(u·x)/D, dw += Σ_t dy ⊙ x·rstd. */
static void rms_norm_back(long T, long D, const real *x, const real *w, const real *rstd, const real *dy,
                          real *dx, real *dw) {
    for (long t = 0; t < T; t++) {
        double r = rstd[t], dot = 0;
        for (long j = 0; j < D; j++) dot += (double)dy[t * D + j] * w[j] * x[t * D + j];
        for (long j = 0; j < D; j++)
            dx[t * D + j] += (real)(r * w[j] * dy[t * D + j] - x[t * D + j] * r * r * r * dot / D);
    }
    for (long j = 0; j < D; j++) {
        double sum = 0;
        for (long t = 0; t < T; t++) sum += (double)dy[t * D + j] * x[t * D + j] * rstd[t];
        dw[j] += (real)sum;
    }
}

/* As rms_norm_back, with x = s − p, and w + a for w; da[g] = Σ of the group dy ⊙ x·rstd. */
static void add_norm_back(long T, long D, long G, const real *s, const real *p, const real *w, const real *a,
                          long lda, const real *rstd, const real *dy, real *ds, real *dp, real *dw,
                          real *da) {
    for (long t = 0; t < T; t++) {
        const real *at = a ? a + t * lda : NULL;
        double r = rstd[t], dot = 0;
        for (long g = 0; a && g < G; g++) da[t * lda + g] = 0;
        for (long j = 0; j < D; j++) {
            double term = dy[t * D + j] * less(s, p, t * D + j) * r;
            dot += weight(D, G, w, at, j) * term;
            if (a) da[t * lda + j / (D / G)] += (real)term;
            if (ds) dw[j] += (real)term;
        }
        for (long j = 0; ds && j < D; j++) {
            double slope =
                r * (weight(D, G, w, at, j) * dy[t * D + j] - less(s, p, t * D + j) * r * dot / (double)D);
            ds[t * D + j] += (real)slope;
            if (p) dp[t * D + j] -= (real)slope;
        }
    }
}

static void rope(long T, long S, long position, const int32_t *start, long heads, long hd, const real *cosine,
                 const real *sine, int direction, real *x, long ldx) {
    long half = hd / 2;
    for (long t = 0; t < T; t++) {
        long at = position + t % S - (start ? start[t] : 0);
        const real *c = cosine + at * half, *s = sine + at * half;
        for (long h = 0; h < heads; h++) {
            real *low = x + t * ldx + h * hd, *high = low + half;
            for (long j = 0; j < half; j++) {
                real a = low[j], b = high[j];
                low[j] = a * c[j] - direction * b * s[j];
                high[j] = b * c[j] + direction * a * s[j];
            }
        }
    }
}

static void swiglu(long T, long F, const real *gu, real *h) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < F; j++) {
            double g = gu[t * 2 * F + j], u = gu[t * 2 * F + F + j];
            double sigmoid = 1 / (1 + exp(-g));
            h[t * F + j] = (real)(g * sigmoid * u);
        }
}

static void swiglu_back(long T, long F, const real *gu, const real *dh, real *dgu, real *h) {
    for (long t = 0; t < T; t++)
        for (long j = 0; j < F; j++) {
            double g = gu[t * 2 * F + j], u = gu[t * 2 * F + F + j], d = dh[t * F + j];
            double sigmoid = 1 / (1 + exp(-g));
            dgu[t * 2 * F + j] = (real)(d * u * sigmoid * (1 + g * (1 - sigmoid)));
            dgu[t * 2 * F + F + j] = (real)(d * g * sigmoid);
            if (h) h[t * F + j] = (real)(g * sigmoid * u);
        }
}

static void softcap(long T, long V, real *logits, long ld, double cap) {
    for (long t = 0; t < T; t++)
        for (long v = 0; v < V; v++) logits[t * ld + v] = (real)(cap * tanh(logits[t * ld + v] / cap));
}

/* The slope of softcap at what became this logit; 1 without a cap. */
static double cap_slope(double logit, double cap) {
    return cap == 0 ? 1 : 1 - logit / cap * (logit / cap);
}

/* A token that does not count. */
static void leave_out(long V, real *row, double scale, real *loss, real *square) {
    *loss = 0;
    if (square) *square = 0;
    for (long v = 0; scale != 0 && v < V; v++) row[v] = 0;
}

static void cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, double cap, double z,
                          double scale, real *loss, real *squares) {
    for (long t = 0; t < T; t++) {
        real *row = logits + t * ld;
        if (target[t] < 0) {
            leave_out(V, row, scale, loss + t, squares ? squares + t : NULL);
            continue;
        }
        double largest = -INFINITY, sum = 0;
        for (long v = 0; v < V; v++) largest = row[v] > largest ? row[v] : largest;
        for (long v = 0; v < V; v++) sum += exp(row[v] - largest);
        double lse = log(sum) + largest;
        loss[t] = (real)(lse - row[target[t]]);
        if (squares) squares[t] = (real)(lse * lse);
        if (scale == 0) continue;
        for (long v = 0; v < V; v++) {
            double softmax = exp(row[v] - largest) / sum;
            row[v] =
                (real)(scale * (softmax * (1 + 2 * z * lse) - (v == target[t])) * cap_slope(row[v], cap));
        }
    }
}

static void row_largest(long T, long V, const real *logits, long ld, real *largest) {
    for (long t = 0; t < T; t++) {
        largest[t] = -INFINITY;
        for (long v = 0; v < V; v++) largest[t] = fmax(largest[t], logits[t * ld + v]);
    }
}

static void part_exp(long T, long V, real *logits, long ld, const int32_t *target, long first,
                     const real *largest, double cap, real *sums) {
    for (long t = 0; t < T; t++) {
        real *row = logits + t * ld;
        double sum = 0;
        sums[T + t] = has(target[t], first, V) ? row[target[t] - first] - largest[t] : 0;
        for (long v = 0; v < V; v++) {
            real term = (real)exp((double)row[v] - largest[t]);
            sum += term;
            if (cap == 0) row[v] = term;
        }
        sums[t] = (real)sum;
    }
}

static void part_cross_entropy(long T, long V, real *logits, long ld, const int32_t *target, long first,
                               const real *largest, const real *sums, double cap, double z, double scale,
                               real *loss, real *squares) {
    for (long t = 0; t < T; t++) {
        if (target[t] < 0) {
            leave_out(V, logits + t * ld, scale, loss + t, squares ? squares + t : NULL);
            continue;
        }
        double lse = log(sums[t]) + largest[t];
        loss[t] = (real)(log(sums[t]) - sums[T + t]);
        if (squares) squares[t] = (real)(lse * lse);
        for (long v = 0; scale != 0 && v < V; v++) {
            real *x = logits + t * ld + v;
            double softmax = (cap == 0 ? *x : exp((double)*x - largest[t])) / sums[t];
            *x =
                (real)(scale * (softmax * (1 + 2 * z * lse) - (first + v == target[t])) * cap_slope(*x, cap));
        }
    }
}

void reference_trunk_layers(struct ops *ops) {
    ops->cut_tokens = cut_tokens;
    ops->embed = embed;
    ops->embed_back = embed_back;
    ops->rms_norm = rms_norm;
    ops->add_rms_norm = add_rms_norm;
    ops->row_rstd = row_rstd;
    ops->row_rstd_back = row_rstd_back;
    ops->add_norms = add_norms;
    ops->rms_norm_back = rms_norm_back;
    ops->add_norm_back = add_norm_back;
    ops->rope = rope;
    ops->swiglu = swiglu;
    ops->swiglu_back = swiglu_back;
    ops->softcap = softcap;
    ops->cross_entropy = cross_entropy;
    ops->row_largest = row_largest;
    ops->part_exp = part_exp;
    ops->part_cross_entropy = part_cross_entropy;
}
