/* The reference's forward operations of delta connections against model.md's formulas written out a second
 * time: the delta is replaced first where it is normalised, sums are in double. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/delta_formulas.h"

#include <string.h>

static const double GAMMA = 3.5;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* One connection with `normalize`: the replaced delta γ·δ/‖δ‖ and the row factor r that stands for it. */
struct connection {
    real t[T * D], s[T * D], r[T];
    double delta[T * D];
};

static void make_connection(struct connection *c) {
    fill("target", T * D, c->t, -1, 1);
    fill("source", T * D, c->s, -1, 1);
    ops->delta_inverse_norm(T, D, c->t, c->s, EPS, c->r);
    for (long t = 0; t < T; t++) {
        double square = 0;
        for (long j = 0; j < D; j++) square += pow((double)c->t[t * D + j] - c->s[t * D + j], 2);
        for (long j = 0; j < D; j++)
            c->delta[t * D + j] = GAMMA * ((double)c->t[t * D + j] - c->s[t * D + j]) / sqrt(square);
        c->r[t] *= (real)GAMMA;
    }
}

static void differences(void **state) {
    (void)state;
    struct connection c;
    real delta[T * D], mean[T * D], only[T * D];
    make_connection(&c);
    ops->delta_mean(T, D, c.t, c.s, delta, mean);
    for (long i = 0; i < T * D; i++) {
        near("delta", i, delta[i], (double)c.t[i] - c.s[i]);
        near("mean", i, mean[i], ((double)c.t[i] + c.s[i]) / 2);
    }
    ops->delta_mean(T, D, c.t, c.s, only, NULL);
    assert_memory_equal(only, delta, sizeof only);
    ops->delta_mean(T, D, c.t, c.s, NULL, only);
    assert_memory_equal(only, mean, sizeof only);

    real k[T] = {0.5, -1, 2}, d[T * D], dt[T * D], ds[T * D];
    FILL(d, -1, 1);
    for (int variant = 0; variant < 4; variant++) {
        for (long i = 0; i < T * D; i++) dt[i] = 1, ds[i] = 2;
        ops->delta_spread(T, D, variant & 1 ? d : NULL, variant & 2 ? k : NULL, c.t, c.s, dt, ds);
        for (long i = 0; i < T * D; i++) {
            double e = (variant & 1 ? d[i] : 0) + (variant & 2 ? k[i / D] * ((double)c.t[i] - c.s[i]) : 0);
            near("dt", i, dt[i], 1 + e);
            near("ds", i, ds[i], 2 - e);
        }
    }
}

static void bottleneck(void **state) {
    (void)state;
    struct connection c;
    real wp[W * D], bias[W], logits[T * W], p[T * W], g[T * W], v[T * W], r[n * T], weight[T * n];
    real scale[n] = {(real)SCALE, (real)0.6};
    FILL(wp, -1, 1);
    FILL(bias, -1, 1);
    FILL(logits, -2, 2);
    FILL(weight, -1, 1);
    make_connection(&c);
    for (long i = 0; i < n * T; i++) r[i] = c.r[i % T];
    for (long i = 0; i < T * W; i++) { /* the raw projection Wp(t − s) */
        double sum = 0;
        for (long j = 0; j < D; j++)
            sum += wp[i % W * D + j] * ((double)c.t[i / W * D + j] - c.s[i / W * D + j]);
        p[i] = (real)sum;
    }
    memcpy(g, logits, sizeof g);
    ops->bottleneck_gate(T, n, Hd, bias, p, r, scale, weight, g, v);
    for (long i = 0; i < T * W; i++) {
        long t = i / W, connection = i % W / Hd;
        double u = 0, gate = sigmoid((double)logits[i] + bias[i % W]);
        for (long j = 0; j < D; j++) u += wp[i % W * D + j] * c.delta[t * D + j];
        near("g", i, g[i], gate);
        near("v", i, v[i], weight[t * n + connection] * u * scale[connection] * gate);
    }
}

static void full(void **state) {
    (void)state;
    struct connection c;
    real wg[D * D], x[T * LD], g[T * LD], out[T * LD], rms[T], mix = (real)0.7;
    FILL(wg, -0.5, 0.5);
    FILL(out, -1, 1);
    make_connection(&c);
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++) {
            double sum = 0;
            for (long k = 0; k < D; k++) sum += wg[j * D + k] * ((double)c.t[t * D + k] - c.s[t * D + k]);
            x[t * LD + j] = (real)sum;
        }
    real before[T * LD];
    memcpy(before, out, sizeof before);
    ops->sigmoid_gate(T, D, SCALE, c.r, x, g, LD);
    ops->gated_delta(T, D, D, c.t, c.s, g, LD, c.r, 1, &mix, 0, true, out, LD, rms);
    for (long t = 0; t < T; t++) {
        double squares = 0;
        for (long j = 0; j < D; j++) {
            double logit = 0;
            for (long k = 0; k < D; k++) logit += SCALE * wg[j * D + k] * c.delta[t * D + k];
            double part = c.delta[t * D + j] * sigmoid(logit);
            squares += part * part;
            near("g", t * LD + j, g[t * LD + j], sigmoid(logit));
            near("out", t * LD + j, out[t * LD + j], before[t * LD + j] + mix * part);
        }
        for (long j = D; j < LD; j++) assert_true(out[t * LD + j] == before[t * LD + j]);
        near("rms", t, rms[t], sqrt(squares / D + 1e-12));
    }
}

static void adaptive(void **state) {
    (void)state;
    struct connection c;
    real e[T * (G + 1)], square[T], logits[T * LD], p[T * LD], bias[G], out[T * D], weight[T * n];
    FILL(logits, -2, 2);
    FILL(bias, -1, 1);
    FILL(weight, -1, 1);
    make_connection(&c);
    memcpy(p, logits, sizeof p);
    ops->delta_magnitude(T, D, c.t, c.s, c.r, EPS, e, G + 1, square);
    ops->softmax_gate(T, G, bias, 1 / 0.7, p, LD);
    ops->gated_delta(T, D, G, c.t, c.s, p, LD, c.r, SCALE, weight + 1, n, false, out, D, NULL);
    for (long t = 0; t < T; t++) {
        double mean = 0, raw = 0, sum = 0;
        for (long j = 0; j < D; j++) {
            mean += pow(c.delta[t * D + j], 2) / D;
            raw += pow((double)c.t[t * D + j] - c.s[t * D + j], 2) / D;
        }
        near("e", t, e[t * (G + 1)], sqrt(mean + EPS));
        near("square", t, square[t], raw);
        for (long j = 0; j < G; j++) sum += exp(((double)logits[t * LD + j] + bias[j]) / 0.7);
        for (long j = 0; j < G; j++)
            near("p", t * LD + j, p[t * LD + j], exp(((double)logits[t * LD + j] + bias[j]) / 0.7) / sum);
        for (long j = 0; j < D; j++)
            near("out", t * D + j, out[t * D + j],
                 weight[t * n + 1] * c.delta[t * D + j] * SCALE * p[t * LD + j * G / D]);
    }
}

static void silu(void **state) {
    (void)state;
    real x[T * W], before[T * W], bias[W], h[T * W];
    FILL(x, -5, 5);
    FILL(bias, -1, 1);
    memcpy(before, x, sizeof x);
    ops->bias_silu(T, W, bias, x, h);
    for (long i = 0; i < T * W; i++) {
        double a = (double)before[i] + bias[i % W];
        near("x", i, x[i], a);
        near("h", i, h[i], a * sigmoid(a));
    }
    memset(h, 0, sizeof h);
    ops->silu(T * W, x, h);
    for (long i = 0; i < T * W; i++) near("silu", i, h[i], (double)x[i] * sigmoid((double)x[i]));
}

static void entropies(void **state) {
    (void)state;
    real g[T * LD];
    FILL(g, 0.01, 0.99);
    double bits = 0, nats = 0;
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++) {
            double x = g[t * LD + j];
            bits += (x * log(1 / x) + (1 - x) * log(1 / (1 - x))) / log(2);
            nats += x * log(1 / x) / log(D);
        }
    /* Both sides sum 36 terms in double, whatever `real` is. */
    assert_true(fabs(binary_entropy(T, D, g, LD, NULL) - bits) < 1e-13 * bits);
    assert_true(fabs(softmax_entropy(T, D, g, LD, NULL) - nats) < 1e-13 * nats);
    for (long i = 0; i < T * LD; i++) g[i] = (real)0.5;
    assert_true(binary_entropy(T, D, g, LD, NULL) == T * D); /* a bit each */
    double sum = 3;                                    /* both add; the factor is of what is added alone */
    ops->binary_entropy(T, D, g, LD, 0.25, NULL, &sum);
    assert_true(sum == 3 + 0.25 * T * D);
    sum = 3;
    ops->softmax_entropy(T, D, g, LD, NULL, &sum);
    assert_true(fabs(sum - 3 - softmax_entropy(T, D, g, LD, NULL)) < 1e-13 * sum);
}

/* Numbers a token, and columns of rows. */
static void rows(void **state) {
    (void)state;
    real inv[T], r[T], alpha[T * LD], mix[n], weight[T * n], x[T * LD], y[T * LD], before[T * LD];
    real gamma = (real)GAMMA;
    FILL(inv, 0.1, 1);
    FILL(alpha, 0, 1);
    FILL(mix, -1, 1);
    FILL(x, -1, 1);
    FILL(before, -1, 1);
    ops->row_factors(T, &gamma, inv, r);
    for (long t = 0; t < T; t++) near("r", t, r[t], (double)gamma * inv[t]);
    for (int mask = 0; mask < 4; mask++) {
        ops->connection_weights(T, n, mask & 1 ? alpha + 1 : NULL, LD, 3, (real)0.5, mask & 2 ? mix : NULL,
                                weight);
        for (long i = 0; i < T * n; i++)
            near("weight", i, weight[i],
                 (mask & 1 ? alpha[i / n * LD + 1 + i % n * 3] : 0.5) * (mask & 2 ? mix[i % n] : 1));
    }
    for (int add = 0; add < 2; add++) {
        memcpy(y, before, sizeof y);
        if (add)
            ops->add_columns(T, A, (real)-0.5, x + 1, D, y + 2, LD);
        else
            ops->copy_columns(T, A, x + 1, D, y + 2, LD);
        for (long i = 0; i < T * LD; i++) {
            long t = i / LD, j = i % LD - 2;
            bool inside = j >= 0 && j < A;
            double xi = inside ? x[t * D + 1 + j] : 0;
            near("y", i, y[i], !inside ? before[i] : add ? before[i] - 0.5 * xi : xi);
        }
    }
    double sum = 0.5, expected = 0.5;
    ops->add_up(T * LD, x, &sum);
    for (long i = 0; i < T * LD; i++) expected += x[i];
    assert_true(sum == expected);
}

/* The root mean square of a row from those of its halves. */
static void root_mean_squares(void **state) {
    (void)state;
    real x[6], half[2], rms;
    double square[2] = {0};
    FILL(x, -1, 1);
    for (int j = 0; j < 6; j++) square[j / 3] += (double)x[j] * x[j];
    for (int h = 0; h < 2; h++) half[h] = (real)sqrt(square[h] / 3);
    ops->squares(2, half);
    rms = half[0] + half[1];
    ops->root_means(1, 2, &rms);
    near("rms", 0, rms, sqrt((square[0] + square[1]) / 6));
}

static void aggregates(void **state) {
    (void)state;
    real query[T * D], key[T * n * D], c[T * n * D], rt[T], rs[n * T], weight[T * n * HEADS], z[T * D] = {0};
    FILL(query, -1, 1);
    FILL(key, -1, 1);
    FILL(c, -1, 1);
    FILL(rt, 0.5, 2);
    FILL(rs, 0.5, 2);
    ops->select(T, n, A, query, key, rt, (const real *[]){rs, rs + T}, weight);
    for (long t = 0; t < T; t++) {
        double score[n] = {0}, sum = 0;
        for (long i = 0; i < n; i++) {
            for (long j = 0; j < A; j++)
                score[i] += (double)query[t * A + j] * rt[t] * key[(t * n + i) * A + j] * rs[i * T + t];
            sum += exp(score[i] / 2); /* √A is 2 */
        }
        for (long i = 0; i < n; i++) near("weight", t * n + i, weight[t * n + i], exp(score[i] / 2) / sum);
    }
    ops->multihead(T, n, D, HEADS, query, key, c, weight, z);
    for (long t = 0; t < T; t++)
        for (long j = 0; j < D; j++) {
            long h = j * HEADS / D, first = h * (D / HEADS);
            double sum = 0, expected = 0;
            for (long i = 0; i < n; i++) {
                double score = 0;
                for (long k = first; k < first + D / HEADS; k++)
                    score += (double)query[t * D + k] * key[(t * n + i) * D + k];
                sum += exp(score / 2); /* heads are four wide */
                expected += exp(score / 2) * c[(t * n + i) * D + j];
            }
            near("z", t * D + j, z[t * D + j], expected / sum);
        }
}

/* By exponentials of scores, to which the null source adds 1. */
static void depth(void **state) {
    (void)state;
    real h[n * T * D], query[D], lambda = (real)0.3, x[T * D], mixed[T * D], sum[T * D];
    const real *sources[n] = {h, h + T * D};
    FILL(h, -1, 1);
    FILL(query, -1, 1);
    FILL(x, -1, 1);
    for (long i = 0; i < T * D; i++) mixed[i] = x[i];
    ops->depth_attention(T, n, D, query, sources, EPS, &lambda, mixed);
    ops->depth_attention(T, n, D, query, sources, EPS, NULL, sum);
    for (long t = 0; t < T; t++) {
        double e[n], total = 0;
        for (long i = 0; i < n; i++) {
            const real *row = sources[i] + t * D;
            total += e[i] = exp(dot(D, query, row) / sqrt(dot(D, row, row) / D + EPS));
        }
        for (long j = t * D; j < (t + 1) * D; j++) {
            double value = 0;
            for (long i = 0; i < n; i++) value += e[i] * sources[i][j];
            near("sum", j, sum[j], value / total);
            near("mixed", j, mixed[j], x[j] + lambda * (value / (total + 1) - x[j]));
        }
    }
}

int main(void) {
    ops = ops_find("reference");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences), cmocka_unit_test(bottleneck),
        cmocka_unit_test(full),        cmocka_unit_test(adaptive),
        cmocka_unit_test(silu),        cmocka_unit_test(entropies),
        cmocka_unit_test(rows),        cmocka_unit_test(root_mean_squares),
        cmocka_unit_test(aggregates),  cmocka_unit_test(depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
