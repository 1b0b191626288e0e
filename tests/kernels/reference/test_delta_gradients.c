/* The reference's backward passes of contributions, norms of deltas and weights among connections against
 * finite differences of its forward passes: every input that has a gradient, with and without its optional
 * arguments. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/reference.h"

#include <math.h>
#include <string.h>

enum { T = 3, n = 3, Hd = 5, D = 12, G = 4, A = 4, HEADS = 3, LD = 7 };

/* --------------------------------------------------------------- contributions that gate the delta itself */

struct contribution {
    bool has_r, has_rms;
    long groups, ldw; /* ldw 0: one weight for all tokens, −1: none */
    double sparsity;
    long padding; /* the token that has no part in sparsity; −1: none */
    real t[T * D], s[T * D], gate[T * (D + 2)], r[T], weight[T * n], dout[T * (D + 1)];
};

static double contribution_loss(const void *context) {
    const struct contribution *c = context;
    real out[T * (D + 1)] = {0}, rms[T];
    ops->gated_delta(T, D, c->groups, c->t, c->s, c->gate, c->groups + 2, c->has_r ? c->r : NULL, 0.8,
                     c->ldw < 0 ? NULL : c->weight, c->ldw < 0 ? 0 : c->ldw, false, out, D + 1,
                     c->has_rms ? rms : NULL);
    double loss = dot(T * (D + 1), c->dout, out);
    for (long t = 0; c->has_rms && t < T; t++) loss += c->padding == t ? 0 : c->sparsity * rms[t];
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
        c.padding = variant % 3 - 1; /* a token, or none */
        if (c.padding >= 0) rms[c.padding] = 0;
        ops->gated_delta_back(T, D, c.groups, c.t, c.s, c.gate, c.groups + 2, r, 0.8, weight, ldw, c.dout,
                              D + 1, c.has_rms ? rms : NULL, c.sparsity, dweight, n, dgate, dd,
                              c.has_r ? dr : NULL);
        ops->delta_spread(T, D, dd, NULL, c.t, c.s, dt, ds);
        if (c.ldw == 0) /* the one weight serves all tokens */
            for (long t = 1; t < T; t++) dweight[0] += dweight[t * n];
        check_gradients(contribution_loss, &c,
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

/* ------------------------------------------------------------------ norms of deltas, through delta_spread */

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
    check_gradients(row_factor_loss, &c,
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
        check_gradients(
            magnitude_loss, &c,
            (struct input[]){
                {"t", T, D, c.t, D, dt, D}, {"s", T, D, c.s, D, ds, D}, {"r", has_r, T, c.r, T, dr, T}, {0}});
    }
}

/* Sparsity of bottleneck contributions c = Wo·v, as the model uses gram_rms: gradients of v and of Wo. */
struct gram {
    const real *counts;
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
    ops->gram_rms(T, Hd, D, c->v, 0, c->counts, q, NULL, LD, rms);
    double loss = 0;
    for (long t = 0; t < T; t++) loss += 0.6 * rms[t];
    return loss;
}

static void gram(void **state) {
    (void)state;
    static struct gram c;
    FILL(c.wo, -1, 1);
    FILL(c.v, -1, 1);
    real q[T * LD], kv[T * LD], rms[T], outer[Hd * Hd], dwo[D * Hd], some[T];
    for (long t = 0; t < T; t++) some[t] = t != 1;
    for (int padded = 0; padded < 2; padded++) {
        c.counts = padded ? some : NULL;
        gram_products(&c, q);
        ops->gram_rms(T, Hd, D, c.v, 0.6, c.counts, q, kv, LD, rms);
        assert_true((rms[1] == 0) == padded);
        ops->gemm('T', 'N', Hd, Hd, T, 1, kv, LD, c.v, LD, 0, outer, Hd);
        ops->gemm('N', 'N', D, Hd, Hd, 1, c.wo, Hd, outer, Hd, 0, dwo, Hd); /* dWo = Wo·Σ_t kv vᵀ */
        check_gradients(
            gram_loss, &c,
            (struct input[]){{"v", T, Hd, c.v, LD, q, LD}, {"Wo", D, Hd, c.wo, Hd, dwo, Hd}, {0}});
    }
}

/* -------------------------------------------------------------------------- weights among the connections */

/* Every second column of alpha, or the same share for all; mix or none. */
struct weights {
    bool even, has_mix;
    real alpha[T * (2 * n + 1)], mix[n], dweight[T * n];
};

static double weights_loss(const void *context) {
    const struct weights *c = context;
    real weight[T * n];
    ops->connection_weights(T, n, c->even ? NULL : c->alpha, 2 * n + 1, 2, (real)0.3,
                            c->has_mix ? c->mix : NULL, weight);
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
        ops->connection_weights_back(T, n, c.even ? NULL : c.alpha, 2 * n + 1, 2, (real)0.3,
                                     c.has_mix ? c.mix : NULL, c.dweight, c.has_mix ? dmix : NULL,
                                     c.even ? NULL : dalpha);
        check_gradients(weights_loss, &c,
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
    check_gradients(selection_loss, &c,
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
    check_gradients(heads_loss, &c,
                    (struct input[]){{"query", T, D, c.query, D, dquery, D},
                                     {"key", T * n, D, c.key, D, dkey, D},
                                     {"c", T * n, D, c.c, D, dc, D},
                                     {0}});
}

/* -------------------------------------------------------------------------------- attention over depth */

struct depth {
    bool residual; /* with a null source, else the sum alone */
    real h[n * T * D], query[D], lambda, x[T * D], dout[T * D];
};

static double depth_loss(const void *context) {
    const struct depth *c = context;
    const real *h[n];
    real x[T * D];
    memcpy(x, c->x, sizeof x);
    for (long i = 0; i < n; i++) h[i] = c->h + i * T * D;
    ops->depth_attention(T, n, D, c->query, h, 1e-2, c->residual ? &c->lambda : NULL, x);
    return dot(T * D, c->dout, x);
}

static void depth(void **state) {
    (void)state;
    static struct depth c = {.lambda = (real)0.3};
    FILL(c.h, -1, 1);
    FILL(c.query, -1, 1);
    FILL(c.x, -1, 1);
    FILL(c.dout, -2, 2);
    for (int residual = 0; residual < 2; residual++) {
        const real *h[n];
        real dsources[n * T * D] = {0}, *dh[n], of_token[T * D], dlambda_of[T], dquery[D] = {0}, dlambda = 0,
                              dx[T * D];
        for (long i = 0; i < n; i++) h[i] = c.h + i * T * D, dh[i] = dsources + i * T * D;
        c.residual = residual;
        ops->depth_attention_back(T, n, D, c.query, h, 1e-2, residual ? &c.lambda : NULL,
                                  residual ? c.x : NULL, c.dout, dh, of_token, residual ? dlambda_of : NULL);
        ops->add_column_sums(T, D, of_token, D, dquery);
        if (residual) ops->add_column_sums(T, 1, dlambda_of, 1, &dlambda);
        for (long j = 0; j < T * D; j++) dx[j] = residual ? (1 - c.lambda) * c.dout[j] : 0;
        check_gradients(depth_loss, &c,
                        (struct input[]){{"h", n * T, D, c.h, D, dsources, D},
                                         {"query", 1, D, c.query, D, dquery, D},
                                         {"x", T, D, c.x, D, dx, D},
                                         {"lambda", 1, residual, &c.lambda, 1, &dlambda, 1},
                                         {0}});
    }
}

int main(void) {
    ops = ops_find("reference");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contribution), cmocka_unit_test(norms),     cmocka_unit_test(gram),
        cmocka_unit_test(selection),    cmocka_unit_test(multihead), cmocka_unit_test(weights),
        cmocka_unit_test(depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
