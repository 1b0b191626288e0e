/* The reference's backward passes of gates against finite differences of its forward passes: every input that
 * has a gradient, with and without its optional arguments. */
#include "kernels/backends/backends.h"
#include "tests/kernels/reference/reference.h"

#include <string.h>

enum { T = 3, n = 3, Hd = 5, W = n * Hd };
static const real some[T] = {1, 0, 1}; /* tokens that count */

/* ----------------------------------------------------------------------------- activation of the gate MLP */

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
    check_gradients(
        silu_loss, &c,
        (struct input[]){{"x", 1, T * W, c.x, T * W, dx, T * W}, {"bias", 1, W, c.bias, W, dbias, W}, {0}});
}

/* ---------------------------------------------------------------------------------------- bottleneck gate */

struct bottleneck {
    bool has_r, has_weight, has_extra;
    double entropy;
    const real *counts;
    real bias[W], p[T * W], r[n * T], scale[n], weight[T * n], logits[T * W], dv[T * W], extra[T * W];
};

static double bottleneck_loss(const void *context) {
    const struct bottleneck *c = context;
    real g[T * W], v[T * W];
    memcpy(g, c->logits, sizeof g);
    ops->bottleneck_gate(T, n, Hd, c->bias, c->p, c->has_r ? c->r : NULL, c->scale,
                         c->has_weight ? c->weight : NULL, g, v);
    double loss = dot(T * W, c->dv, v) + c->entropy * binary_entropy(T, W, g, W, c->counts);
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
    for (int variant = 0; variant < 24; variant++) {
        c.has_r = variant & 1;
        c.has_weight = variant & 2;
        c.has_extra = variant & 4;
        c.entropy = variant & 8 ? 0.3 : 0;
        c.counts = variant < 16 ? NULL : some;
        if (c.counts) c.entropy = 0.3;
        real g[T * W], v[T * W], dv[T * W], dweight[T * n], dr[n * T], dbias[W] = {0};
        memcpy(g, c.logits, sizeof g);
        memcpy(dv, c.dv, sizeof dv);
        ops->bottleneck_gate(T, n, Hd, c.bias, c.p, c.has_r ? c.r : NULL, c.scale,
                             c.has_weight ? c.weight : NULL, g, v);
        ops->bottleneck_gate_back(T, n, Hd, c.p, c.has_r ? c.r : NULL, c.scale,
                                  c.has_weight ? c.weight : NULL, c.has_extra ? c.extra : NULL, c.entropy,
                                  c.counts, g, dv, dweight, c.has_r ? dr : NULL);
        for (long i = 0; i < T * W; i++) dbias[i % W] += g[i];
        check_gradients(bottleneck_loss, &c,
                        (struct input[]){{"p", T, W, c.p, W, dv, W},
                                         {"logits", T, W, c.logits, W, g, W},
                                         {"bias", 1, W, c.bias, W, dbias, W},
                                         {"weight", c.has_weight ? T : 0, n, c.weight, n, dweight, n},
                                         {"r", c.has_r ? n : 0, T, c.r, T, dr, T},
                                         {0}});
    }
}

/* ------------------------------------------------------------------------------ sigmoid and softmax gates */

enum { LD = 7, LDG = 6, W5 = 5 }; /* row distances beyond the width of 5 */

struct gate {
    bool has_r;
    double entropy;
    const real *counts;
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
    return gate_loss(c, g) + c->entropy * binary_entropy(T, W5, g, LD, c->counts);
}

static void sigmoid(void **state) {
    (void)state;
    static struct gate c;
    FILL(c.x, -3, 3);
    FILL(c.r, 0.5, 2);
    FILL(c.dg, -1, 1);
    for (int variant = 0; variant < 6; variant++) {
        c.has_r = variant & 1;
        c.entropy = variant > 1 ? 0.3 : 0;
        c.counts = variant > 3 ? some : NULL;
        real g[T * LD], dx[T * LDG], dr[T], before[T];
        FILL(before, -1, 1);
        memcpy(dx, c.dg, sizeof dx);
        memcpy(dr, before, sizeof dr);
        ops->sigmoid_gate(T, W5, 0.7, c.has_r ? c.r : NULL, c.x, g, LD);
        ops->sigmoid_gate_back(T, W5, 0.7, c.has_r ? c.r : NULL, c.x, g, LD, c.entropy, c.counts, dx, LDG,
                               c.has_r ? dr : NULL);
        for (long t = 0; t < T; t++) dr[t] -= before[t]; /* dr adds */
        check_gradients(
            sigmoid_loss, &c,
            (struct input[]){{"x", T, W5, c.x, LD, dx, LDG}, {"r", c.has_r ? 1 : 0, T, c.r, T, dr, T}, {0}});
    }
}

static double softmax_loss(const void *context) {
    const struct gate *c = context;
    real p[T * LD];
    memcpy(p, c->x, sizeof p);
    ops->softmax_gate(T, W5, c->bias, 1.3, p, LD);
    return gate_loss(c, p) + c->entropy * softmax_entropy(T, W5, p, LD, c->counts);
}

static void softmax(void **state) {
    (void)state;
    static struct gate c;
    FILL(c.x, -3, 3);
    FILL(c.bias, -1, 1);
    FILL(c.dg, -1, 1);
    for (int variant = 0; variant < 3; variant++) {
        c.entropy = variant ? 0.3 : 0;
        c.counts = variant > 1 ? some : NULL;
        real p[T * LD], dx[T * LDG], dbias[W5] = {0};
        memcpy(p, c.x, sizeof p);
        memcpy(dx, c.dg, sizeof dx);
        ops->softmax_gate(T, W5, c.bias, 1.3, p, LD);
        ops->softmax_gate_back(T, W5, 1.3, p, LD, c.entropy, c.counts, dx, LDG);
        for (long i = 0; i < T * W5; i++) dbias[i % W5] += dx[i / W5 * LDG + i % W5];
        check_gradients(
            softmax_loss, &c,
            (struct input[]){{"x", T, W5, c.x, LD, dx, LDG}, {"bias", 1, W5, c.bias, W5, dbias, W5}, {0}});
    }
}

int main(void) {
    ops = ops_find("reference");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silu),
        cmocka_unit_test(bottleneck),
        cmocka_unit_test(sigmoid),
        cmocka_unit_test(softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
