/* The reference's backward passes of delta connections against finite differences of its forward passes:
 * every input that has a gradient, with and without its optional arguments. Only in a GDN_DOUBLE build: the
 * difference of two losses near 10 in float has 1e-6 of noise to divide by a step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/base/random.h"
#include "kernels/ops.h"

enum { T = 3, n = 3, Hd = 5, W = n * Hd, D = 12, G = 4, A = 4, HEADS = 3 };

static const struct ops *ops;

static void fill(const char *name, long count, real *x, double low, double high) {
    for (long i = 0; i < count; i++)
        x[i] = (real)(low + (high - low) * random_uniform(7, random_name(name), (uint64_t)i));
}
#define FILL(array, low, high) fill(#array, (long)(sizeof(array) / sizeof(real)), array, low, high)

static double dot(long count, const real *x, const real *y) {
    double sum = 0;
    for (long i = 0; i < count; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* Sums of gates' entropies, as the slots add them to what is there. */
static double binary_entropy(long rows, long width, const real *g, long ld) {
    double sum = 0;
    ops->binary_entropy(rows, width, g, ld, 1, &sum);
    return sum;
}

static double softmax_entropy(long rows, long width, const real *p, long ld) {
    double sum = 0;
    ops->softmax_entropy(rows, width, p, ld, &sum);
    return sum;
}

/* An input [rows, width] of a loss and the gradient claimed for it; rows are ld and ldg apart. */
struct input {
    const char *name;
    long rows, width;
    real *x;
    long ld;
    const real *gradient;
    long ldg;
};

/* Central differences with step 1e-5: of losses below about 100 with derivatives of order 1 they are off by
 * 1e-16·100/1e-5 from rounding and by 1e-10 from the third derivative, so 2e-8 leaves room for nothing
 * but these. A wrong term of any gradient here is of order 1e-2 or more. */
static void check(double (*loss)(const void *), const void *context, const struct input *inputs) {
    const double step = 1e-5, tolerance = 2e-8;
    for (const struct input *in = inputs; in->name; in++)
        for (long i = 0; i < in->rows * in->width; i++) {
            real *x = &in->x[i / in->width * in->ld + i % in->width], kept = *x;
            *x = (real)(kept + step);
            double above = loss(context);
            *x = (real)(kept - step);
            double below = loss(context);
            *x = kept;
            double expected = (above - below) / (2 * step);
            double got = in->gradient[i / in->width * in->ldg + i % in->width];
            if (!(fabs(got - expected) <= tolerance * fmax(1, fabs(expected))))
                fail_msg("gradient of %s[%ld]: %.12g, by differences %.12g", in->name, i, got, expected);
        }
}

/* ------------------------------------------------------------------------------- activation of the gate MLP
 */

struct silu {
    real x[T * W], bias[W], dh[T * W];
};

static double silu_loss(const void *context) {
    const struct silu *c = context;
    real x[T * W], h[T * W];
    memcpy(x, c->x, sizeof x);
    ops->bias_silu(T, W, c->bias, x, h);
    return dot(T * W, c->dh, h);
}

static void silu(void **state) {
    (void)state;
    static struct silu c;
    FILL(c.x, -4, 4);
    FILL(c.bias, -1, 1);
    FILL(c.dh, -1, 1);
    real x[T * W], h[T * W], dx[T * W], dbias[W] = {0};
    memcpy(x, c.x, sizeof x);
    ops->bias_silu(T, W, c.bias, x, h);
    memcpy(dx, c.dh, sizeof dx);
    ops->silu_back(T * W, x, dx, dx); /* in place, as the contract allows */
    for (long i = 0; i < T * W; i++) dbias[i % W] += dx[i];
    check(silu_loss, &c,
          (struct input[]){{"x", 1, T * W, c.x, T * W, dx, T * W}, {"bias", 1, W, c.bias, W, dbias, W}, {0}});
}

/* -------------------------------------------------------------------------------------------- bottleneck
 * gate */

struct bottleneck {
    bool has_r, has_weight, has_extra;
    double entropy;
    real bias[W], p[T * W], r[n * T], scale[n], weight[T * n], logits[T * W], dv[T * W], extra[T * W];
};

static double bottleneck_loss(const void *context) {
    const struct bottleneck *c = context;
    real g[T * W], v[T * W];
    memcpy(g, c->logits, sizeof g);
    ops->bottleneck_gate(T, n, Hd, c->bias, c->p, c->has_r ? c->r : NULL, c->scale,
                         c->has_weight ? c->weight : NULL, g, v);
    double loss = dot(T * W, c->dv, v) + c->entropy * binary_entropy(T, W, g, W);
    if (c->has_extra) { /* `extra` is the gradient of the v that was not weighted */
        memcpy(g, c->logits, sizeof g);
        ops->bottleneck_gate(T, n, Hd, c->bias, c->p, c->has_r ? c->r : NULL, c->scale, NULL, g, v);
        loss += dot(T * W, c->extra, v);
    }
    return loss;
}

static void bottleneck(void **state) {
    (void)state;
    static struct bottleneck c;
    FILL(c.bias, -1, 1);
    FILL(c.p, -2, 2);
    FILL(c.r, 0.5, 2);
    FILL(c.scale, 0.5, 1);
    FILL(c.weight, -1, 1);
    FILL(c.logits, -3, 3);
    FILL(c.dv, -1, 1);
    FILL(c.extra, -1, 1);
    for (int variant = 0; variant < 16; variant++) {
        c.has_r = variant & 1;
        c.has_weight = variant & 2;
        c.has_extra = variant & 4;
        c.entropy = variant & 8 ? 0.3 : 0;
        real g[T * W], v[T * W], dv[T * W], dweight[T * n], dr[n * T], dbias[W] = {0};
        memcpy(g, c.logits, sizeof g);
        memcpy(dv, c.dv, sizeof dv);
        ops->bottleneck_gate(T, n, Hd, c.bias, c.p, c.has_r ? c.r : NULL, c.scale,
                             c.has_weight ? c.weight : NULL, g, v);
        ops->bottleneck_gate_back(T, n, Hd, c.p, c.has_r ? c.r : NULL, c.scale,
                                  c.has_weight ? c.weight : NULL, c.has_extra ? c.extra : NULL, c.entropy, g,
                                  dv, dweight, c.has_r ? dr : NULL);
        for (long i = 0; i < T * W; i++) dbias[i % W] += g[i];
        check(bottleneck_loss, &c,
              (struct input[]){{"p", T, W, c.p, W, dv, W},
                               {"logits", T, W, c.logits, W, g, W},
                               {"bias", 1, W, c.bias, W, dbias, W},
                               {"weight", c.has_weight ? T : 0, n, c.weight, n, dweight, n},
                               {"r", c.has_r ? n : 0, T, c.r, T, dr, T},
                               {0}});
    }
}

/* ------------------------------------------------------------------------------------ sigmoid and softmax
 * gates */

enum { LD = 7, LDG = 6, W5 = 5 }; /* row distances beyond the width of 5 */

struct gate {
    bool has_r;
    double entropy;
    real x[T * LD], r[T], bias[W5], dg[T * LDG];
};

static double gate_loss(const struct gate *c, const real *g) {
    double loss = 0;
    for (long t = 0; t < T; t++) loss += dot(W5, c->dg + t * LDG, g + t * LD);
    return loss;
}

static double sigmoid_loss(const void *context) {
    const struct gate *c = context;
    real g[T * LD];
    ops->sigmoid_gate(T, W5, 0.7, c->has_r ? c->r : NULL, c->x, g, LD);
    return gate_loss(c, g) + c->entropy * binary_entropy(T, W5, g, LD);
}

static void sigmoid(void **state) {
    (void)state;
    static struct gate c;
    FILL(c.x, -3, 3);
    FILL(c.r, 0.5, 2);
    FILL(c.dg, -1, 1);
    for (int variant = 0; variant < 4; variant++) {
        c.has_r = variant & 1;
        c.entropy = variant & 2 ? 0.3 : 0;
        real g[T * LD], dx[T * LDG], dr[T], before[T];
        FILL(before, -1, 1);
        memcpy(dx, c.dg, sizeof dx);
        memcpy(dr, before, sizeof dr);
        ops->sigmoid_gate(T, W5, 0.7, c.has_r ? c.r : NULL, c.x, g, LD);
        ops->sigmoid_gate_back(T, W5, 0.7, c.has_r ? c.r : NULL, c.x, g, LD, c.entropy, dx, LDG,
                               c.has_r ? dr : NULL);
        for (long t = 0; t < T; t++) dr[t] -= before[t]; /* dr adds */
        check(
            sigmoid_loss, &c,
            (struct input[]){{"x", T, W5, c.x, LD, dx, LDG}, {"r", c.has_r ? 1 : 0, T, c.r, T, dr, T}, {0}});
    }
}

static double softmax_loss(const void *context) {
    const struct gate *c = context;
    real p[T * LD];
    memcpy(p, c->x, sizeof p);
    ops->softmax_gate(T, W5, c->bias, 1.3, p, LD);
    return gate_loss(c, p) + c->entropy * softmax_entropy(T, W5, p, LD);
}

static void softmax(void **state) {
    (void)state;
    static struct gate c;
    FILL(c.x, -3, 3);
    FILL(c.bias, -1, 1);
    FILL(c.dg, -1, 1);
    for (int variant = 0; variant < 2; variant++) {
        c.entropy = variant ? 0.3 : 0;
        real p[T * LD], dx[T * LDG], dbias[W5] = {0};
        memcpy(p, c.x, sizeof p);
        memcpy(dx, c.dg, sizeof dx);
        ops->softmax_gate(T, W5, c.bias, 1.3, p, LD);
        ops->softmax_gate_back(T, W5, 1.3, p, LD, c.entropy, dx, LDG);
        for (long i = 0; i < T * W5; i++) dbias[i % W5] += dx[i / W5 * LDG + i % W5];
        check(softmax_loss, &c,
              (struct input[]){{"x", T, W5, c.x, LD, dx, LDG}, {"bias", 1, W5, c.bias, W5, dbias, W5}, {0}});
    }
}

/* -------------------------------------------------------------------- contributions that gate the delta
 * itself */

struct contribution {
    bool has_r, has_rms;
    long groups, ldw; /* ldw 0: one weight for all tokens, −1: none */
    double sparsity;
    real t[T * D], s[T * D], gate[T * (D + 2)], r[T], weight[T * n], dout[T * (D + 1)];
};

static double contribution_loss(const void *context) {
    const struct contribution *c = context;
    real out[T * (D + 1)] = {0}, rms[T];
    ops->gated_delta(T, D, c->groups, c->t, c->s, c->gate, c->groups + 2, c->has_r ? c->r : NULL, 0.8,
                     c->ldw < 0 ? NULL : c->weight, c->ldw < 0 ? 0 : c->ldw, false, out, D + 1,
                     c->has_rms ? rms : NULL);
    double loss = dot(T * (D + 1), c->dout, out);
    for (long t = 0; c->has_rms && t < T; t++) loss += c->sparsity * rms[t];
    return loss;
}

static void contribution(void **state) {
    (void)state;
    static struct contribution c = {.sparsity = 0.4};
    FILL(c.t, -2, 2);
    FILL(c.s, -2, 2);
    FILL(c.gate, 0, 1);
    FILL(c.r, 0.5, 2);
    FILL(c.weight, -1, 1);
    FILL(c.dout, -1, 1);
    const long ldws[] = {-1, 0, n};
    for (int variant = 0; variant < 24; variant++) {
        c.has_r = variant & 1;
        c.has_rms = variant & 2;
        c.groups = variant & 4 ? D : G;
        c.ldw = ldws[variant / 8];
        const real *r = c.has_r ? c.r : NULL, *weight = c.ldw < 0 ? NULL : c.weight;
        long ldw = c.ldw < 0 ? 0 : c.ldw;
        real out[T * (D + 1)], rms[T], dweight[T * n] = {0}, dgate[T * D], dd[T * D], dr[T];
        real dt[T * D] = {0}, ds[T * D] = {0};
        ops->gated_delta(T, D, c.groups, c.t, c.s, c.gate, c.groups + 2, r, 0.8, weight, ldw, false, out,
                         D + 1, c.has_rms ? rms : NULL);
        ops->gated_delta_back(T, D, c.groups, c.t, c.s, c.gate, c.groups + 2, r, 0.8, weight, ldw, c.dout,
                              D + 1, c.has_rms ? rms : NULL, c.sparsity, dweight, n, dgate, dd,
                              c.has_r ? dr : NULL);
        ops->delta_spread(T, D, dd, NULL, c.t, c.s, dt, ds);
        if (c.ldw == 0) /* the one weight serves all tokens */
            for (long t = 1; t < T; t++) dweight[0] += dweight[t * n];
        check(contribution_loss, &c,
              (struct input[]){{"t", T, D, c.t, D, dt, D},
                               {"s", T, D, c.s, D, ds, D},
                               {"gate", T, c.groups, c.gate, c.groups + 2, dgate, c.groups},
                               {"r", c.has_r ? 1 : 0, T, c.r, T, dr, T},
                               {"weight",
                                c.ldw < 0    ? 0
                                : c.ldw == 0 ? 1
                                             : T,
                                1, c.weight, n, dweight, n},
                               {0}});
    }
}

/* ------------------------------------------------------------------------- norms of deltas, through
 * delta_spread */

struct norms {
    bool has_r;
    real t[T * D], s[T * D], r[T], d[T], gamma;
};

/* Row factors r = γ/‖t − s‖. */
static double row_factor_loss(const void *context) {
    const struct norms *c = context;
    real inv[T], r[T];
    ops->delta_inverse_norm(T, D, c->t, c->s, 1e-3, inv);
    ops->row_factors(T, &c->gamma, inv, r);
    return dot(T, c->d, r);
}

static double magnitude_loss(const void *context) {
    const struct norms *c = context;
    real e[T], square[T];
    ops->delta_magnitude(T, D, c->t, c->s, c->has_r ? c->r : NULL, 1e-3, e, 1, square);
    return dot(T, c->d, e);
}

static void norms(void **state) {
    (void)state;
    static struct norms c;
    FILL(c.t, -2, 2);
    FILL(c.s, -2, 2);
    FILL(c.r, 0.5, 2);
    FILL(c.d, 0.5, 1);
    c.gamma = (real)1.7;
    real inv[T], k[T] = {0}, dgamma = 0, dt[T * D] = {0}, ds[T * D] = {0};
    ops->delta_inverse_norm(T, D, c.t, c.s, 1e-3, inv);
    ops->row_factors_back(T, &c.gamma, inv, 1e-3, c.d, k, &dgamma);
    ops->delta_spread(T, D, NULL, k, c.t, c.s, dt, ds);
    check(row_factor_loss, &c,
          (struct input[]){{"t", T, D, c.t, D, dt, D},
                           {"s", T, D, c.s, D, ds, D},
                           {"gamma", 1, 1, &c.gamma, 1, &dgamma, 1},
                           {0}});

    for (int has_r = 0; has_r < 2; has_r++) {
        real e[T], square[T], dr[T] = {0};
        c.has_r = has_r;
        ops->delta_magnitude(T, D, c.t, c.s, has_r ? c.r : NULL, 1e-3, e, 1, square);
        ops->delta_magnitude_back(T, D, has_r ? c.r : NULL, e, square, c.d, k, has_r ? dr : NULL);
        memset(dt, 0, sizeof dt);
        memset(ds, 0, sizeof ds);
        ops->delta_spread(T, D, NULL, k, c.t, c.s, dt, ds);
        check(
            magnitude_loss, &c,
            (struct input[]){
                {"t", T, D, c.t, D, dt, D}, {"s", T, D, c.s, D, ds, D}, {"r", has_r, T, c.r, T, dr, T}, {0}});
    }
}

/* Sparsity of bottleneck contributions c = Wo·v, as the model uses gram_rms: gradients of v and of Wo. */
struct gram {
    real wo[D * Hd], v[T * LD];
};

static void gram_products(const struct gram *c, real *q) {
    real gram[Hd * Hd];
    ops->gemm('T', 'N', Hd, Hd, D, 1, c->wo, Hd, c->wo, Hd, 0, gram, Hd);
    ops->gemm('N', 'N', T, Hd, Hd, 1, c->v, LD, gram, Hd, 0, q, LD);
}

static double gram_loss(const void *context) {
    const struct gram *c = context;
    real q[T * LD], rms[T];
    gram_products(c, q);
    ops->gram_rms(T, Hd, D, c->v, 0, q, NULL, LD, rms);
    double loss = 0;
    for (long t = 0; t < T; t++) loss += 0.6 * rms[t];
    return loss;
}

static void gram(void **state) {
    (void)state;
    static struct gram c;
    FILL(c.wo, -1, 1);
    FILL(c.v, -1, 1);
    real q[T * LD], kv[T * LD], rms[T], outer[Hd * Hd], dwo[D * Hd];
    gram_products(&c, q);
    ops->gram_rms(T, Hd, D, c.v, 0.6, q, kv, LD, rms);
    ops->gemm('T', 'N', Hd, Hd, T, 1, kv, LD, c.v, LD, 0, outer, Hd);
    ops->gemm('N', 'N', D, Hd, Hd, 1, c.wo, Hd, outer, Hd, 0, dwo, Hd); /* dWo = Wo·Σ_t kv vᵀ */
    check(gram_loss, &c,
          (struct input[]){{"v", T, Hd, c.v, LD, q, LD}, {"Wo", D, Hd, c.wo, Hd, dwo, Hd}, {0}});
}

/* -------------------------------------------------------------------------------- weights among the
 * connections */

/* Every second column of alpha, or the same share for all; mix or none. */
struct weights {
    bool even, has_mix;
    real alpha[T * (2 * n + 1)], mix[n], dweight[T * n];
};

static double weights_loss(const void *context) {
    const struct weights *c = context;
    real weight[T * n];
    ops->slot_weights(T, n, c->even ? NULL : c->alpha, 2 * n + 1, 2, (real)0.3, c->has_mix ? c->mix : NULL,
                      weight);
    return dot(T * n, c->dweight, weight);
}

static void weights(void **state) {
    (void)state;
    static struct weights c;
    FILL(c.alpha, 0, 1);
    FILL(c.mix, -1, 1);
    FILL(c.dweight, -1, 1);
    for (int mask = 0; mask < 4; mask++) {
        real dmix[n] = {0}, dalpha[T * (2 * n + 1)] = {0};
        c.even = mask & 1, c.has_mix = mask & 2;
        ops->slot_weights_back(T, n, c.even ? NULL : c.alpha, 2 * n + 1, 2, (real)0.3,
                               c.has_mix ? c.mix : NULL, c.dweight, c.has_mix ? dmix : NULL,
                               c.even ? NULL : dalpha);
        check(weights_loss, &c,
              (struct input[]){{"alpha", T, 2 * n + 1, c.alpha, 2 * n + 1, dalpha, 2 * n + 1},
                               {"mix", 1, n, c.mix, n, dmix, n},
                               {0}});
    }
}

struct selection {
    real x[(n + 1) * T * D]; /* target, then sources */
    real query[T * A], key[T * n * A], dweight[T * n];
};

/* r [n + 1, T]: of the target, then of each source. */
static void inverse_rms(const struct selection *c, real *r, const real **sources) {
    for (long i = 0; i < (n + 1) * T; i++)
        r[i] = (real)(1 / sqrt(dot(D, c->x + i * D, c->x + i * D) / D + 1e-5));
    for (long i = 0; i < n; i++) sources[i] = r + (i + 1) * T;
}

static double selection_loss(const void *context) {
    const struct selection *c = context;
    real r[(n + 1) * T], weight[T * n];
    const real *sources[n];
    inverse_rms(c, r, sources);
    ops->select(T, n, A, c->query, c->key, r, sources, weight);
    return dot(T * n, c->dweight, weight);
}

static void selection(void **state) {
    (void)state;
    static struct selection c;
    FILL(c.x, -1, 1);
    FILL(c.query, -1, 1);
    FILL(c.key, -1, 1);
    FILL(c.dweight, -3, 3);
    real r[(n + 1) * T], weight[T * n], dquery[T * A], dkey[T * n * A], dweight[T * n], factor[(n + 1) * T];
    const real *sources[n];
    inverse_rms(&c, r, sources);
    ops->select(T, n, A, c.query, c.key, r, sources, weight);
    memcpy(dquery, c.query, sizeof dquery);
    memcpy(dkey, c.key, sizeof dkey);
    memcpy(dweight, c.dweight, sizeof dweight);
    ops->select_back(T, n, A, D, dquery, dkey, r, sources, weight, dweight, factor, factor + T);
    real dx[(n + 1) * T * D];
    for (long i = 0; i < (n + 1) * T * D; i++) dx[i] = factor[i / D] * c.x[i];
    check(selection_loss, &c,
          (struct input[]){{"x", (n + 1) * T, D, c.x, D, dx, D},
                           {"query", T, A, c.query, A, dquery, A},
                           {"key", T * n, A, c.key, A, dkey, A},
                           {0}});
}

struct heads {
    real query[T * D], key[T * n * D], c[T * n * D], dz[T * D];
};

static double heads_loss(const void *context) {
    const struct heads *c = context;
    real weight[T * n * HEADS], z[T * D] = {0};
    ops->multihead(T, n, D, HEADS, c->query, c->key, c->c, weight, z);
    return dot(T * D, c->dz, z);
}

static void multihead(void **state) {
    (void)state;
    static struct heads c;
    FILL(c.query, -1, 1);
    FILL(c.key, -1, 1);
    FILL(c.c, -1, 1);
    FILL(c.dz, -1, 1);
    real weight[T * n * HEADS], z[T * D] = {0}, dquery[T * D], dkey[T * n * D], dc[T * n * D];
    ops->multihead(T, n, D, HEADS, c.query, c.key, c.c, weight, z);
    memcpy(dquery, c.query, sizeof dquery);
    memcpy(dkey, c.key, sizeof dkey);
    ops->multihead_back(T, n, D, HEADS, dquery, dkey, c.c, weight, c.dz, dc);
    check(heads_loss, &c,
          (struct input[]){{"query", T, D, c.query, D, dquery, D},
                           {"key", T * n, D, c.key, D, dkey, D},
                           {"c", T * n, D, c.c, D, dc, D},
                           {0}});
}

int main(void) {
    ops = ops_find("reference");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silu),    cmocka_unit_test(bottleneck),   cmocka_unit_test(sigmoid),
        cmocka_unit_test(softmax), cmocka_unit_test(contribution), cmocka_unit_test(norms),
        cmocka_unit_test(gram),    cmocka_unit_test(selection),    cmocka_unit_test(multihead),
        cmocka_unit_test(weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
