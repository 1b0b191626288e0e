/* Gates of delta connections: every backend against the reference at odd shapes, with row distances beyond
 * the width, odd ones and multiples of four, and with every combination of optional arguments. All operations
 * give the same bits for every number of threads. */
#include "tests/kernels/ops/delta_shapes.h"

#include <math.h>
#include <string.h>

/* A list on the host, which an operation must have read when it returns: it is spoilt then. */
struct list {
    real x[OPS_CONNECTIONS];
};

static real *fill_list(struct list *list, const struct buffer *from) {
    memcpy(list->x, from->x[REFERENCE], (size_t)from->count * sizeof(real));
    return list->x;
}

static void spoil(struct list *list) {
    for (int i = 0; i < OPS_CONNECTIONS; i++) list->x[i] = (real)NAN;
}

static void silu(void) {
    long T = shape.T, W = shape.D;
    operation = "bias_silu";
    struct buffer *bias = make("bias", W, -1, 1), *x = make("x", T * W, -9, 9), *h = make("h", T * W, 0, 1);
    EACH_SIDE(i) start(i)->bias_silu(T, W, bias->x[i], x->x[i], h->x[i]);
    compare(1, ANY_THREADS);
    operation = "silu";
    x = make("x", T * W, -9, 9), h = make("h", T * W, 0, 1);
    EACH_SIDE(i) start(i)->silu(T * W, x->x[i], h->x[i]);
    compare(1, ANY_THREADS);
    operation = "silu_back";
    x = make("x", T * W, -9, 9), h = make("dh", T * W, -1, 1);
    struct buffer *dx = make("dx", T * W, 0, 1);
    EACH_SIDE(i) {
        start(i)->silu_back(T * W, x->x[i], h->x[i], dx->x[i]);
        start(i)->silu_back(T * W, x->x[i], h->x[i], h->x[i]); /* in place */
    }
    compare(1, ANY_THREADS);
}

/* Of every third token 0. */
static struct buffer *make_counts(long T) {
    struct buffer *counts = make("counts", T, 1, 1);
    set(counts, 2, 3, 0);
    return counts;
}

static void bottleneck(void) {
    long T = shape.T, n = shape.n, Hd = shape.Hd, W = n * Hd;
    struct list list;
    for (int mask = 0; mask < 32; mask++) {
        struct buffer *p = make("p", T * W, -2, 2), *scale = make("scale", n, 0.5, 1), *g, *v;
        struct buffer *r = mask & 1 ? make("r", n * T, 0.5, 2) : NULL;
        struct buffer *weight = mask & 2 ? make("weight", T * n, -1, 1) : NULL;
        if (mask < 4) {
            operation = "bottleneck_gate";
            struct buffer *bias = make("bias", W, -1, 1);
            g = make("g", T * W, -9, 9), v = make("v", T * W, 0, 1);
            EACH_SIDE(i) {
                start(i)->bottleneck_gate(T, n, Hd, bias->x[i], p->x[i], AT(r, i), fill_list(&list, scale),
                                          AT(weight, i), g->x[i], v->x[i]);
                spoil(&list);
            }
            compare(Hd, ANY_THREADS);
            continue;
        }
        operation = "bottleneck_gate_back";
        g = make("g", T * W, 0, 1), v = make("dv", T * W, -1, 1);
        for (int k = 0; k < 2; k++) set(g, k, 11, k); /* saturated */
        struct buffer *extra = mask & 4 ? make("extra", T * W, -1, 1) : NULL;
        struct buffer *dweight = make("dweight", T * n, 0, 1),
                      *dr = mask & 16 ? make("dr", n * T, 0, 1) : NULL,
                      *counts = mask & 4 ? make_counts(T) : NULL;
        EACH_SIDE(i) {
            start(i)->bottleneck_gate_back(T, n, Hd, p->x[i], AT(r, i), fill_list(&list, scale),
                                           AT(weight, i), AT(extra, i), mask & 8 ? 0.3 : 0, AT(counts, i),
                                           g->x[i], v->x[i], dweight->x[i], AT(dr, i));
            spoil(&list);
        }
        compare(Hd, ANY_THREADS);
    }
    operation = "scale_connections";
    struct buffer *weight = make("weight", T * n, -1, 1), *x = make("x", T * W, -1, 1),
                  *y = make("y", T * W, 0, 1);
    EACH_SIDE(i) start(i)->scale_connections(T, n, Hd, weight->x[i], x->x[i], y->x[i]);
    compare(Hd, ANY_THREADS);
    weight = make("weight", T * n, -1, 1), x = make("x", T * W, -1, 1);
    EACH_SIDE(i) start(i)->scale_connections(T, n, Hd, weight->x[i], x->x[i], x->x[i]); /* in place */
    compare(Hd, ANY_THREADS);
}

static void column_gates(void) {
    long T = shape.T, W = shape.D;
    for (int mask = 0; mask < 8; mask++) {
        long ld = W + (mask & 4 ? 8 : 3), lddg = W + (mask & 4 ? 4 : 1);
        double entropy = mask & 2 ? 0.3 : 0;
        operation = "sigmoid_gate";
        struct buffer *x = make("x", T * ld, -9, 9), *g = make("g", T * ld, 0, 1), *dg;
        struct buffer *r = mask & 1 ? make("r", T, 0.5, 2) : NULL;
        EACH_SIDE(i) start(i)->sigmoid_gate(T, W, 0.8, AT(r, i), x->x[i], g->x[i], ld);
        compare(W, ANY_THREADS);

        operation = "sigmoid_gate_back";
        x = make("x", T * ld, -9, 9), g = make("g", T * ld, 0, 1), dg = make("dg", T * lddg, -1, 1);
        struct buffer *dr = make("dr", T, -1, 1), *counts = mask & 1 ? NULL : make_counts(T);
        r = mask & 1 ? make("r", T, 0.5, 2) : NULL;
        for (int k = 0; k < 2; k++) set(g, k, 13, k);
        EACH_SIDE(i)
        start(i)->sigmoid_gate_back(T, W, 0.8, AT(r, i), x->x[i], g->x[i], ld, entropy, AT(counts, i),
                                    dg->x[i], lddg, r ? dr->x[i] : NULL);
        compare(W, ANY_THREADS);
    }
}

/* Gates that are not 0 but below the clamp: their entropy has no slope, however heavy its weight. */
static void clamped_gates(void) {
    long T = shape.T, W = shape.n * shape.Hd;
    for (int kind = 0; kind < 2; kind++) {
        operation = kind ? "sigmoid_gate_back" : "bottleneck_gate_back";
        struct buffer *x = make("x", T * W, -2, 2), *g = make("g", T * W, 5e-8, 5e-8);
        struct buffer *dg = make("dg", T * W, 0, 0), *dweight = make("dweight", T * shape.n, 0, 0);
        struct buffer *scale = make("scale", shape.n, 1, 1);
        EACH_SIDE(i) {
            if (kind)
                start(i)->sigmoid_gate_back(T, W, 1, NULL, x->x[i], g->x[i], W, 1e6, NULL, dg->x[i], W, NULL);
            else
                start(i)->bottleneck_gate_back(T, shape.n, shape.Hd, x->x[i], NULL, scale->x[REFERENCE], NULL,
                                               NULL, 1e6, NULL, g->x[i], dg->x[i], dweight->x[i], NULL);
        }
        compare(1, ANY_THREADS);
    }
    /* A column alone: the entropy of columns that do not exist would be as small as its own, but no less. */
    operation = "binary_entropy";
    struct buffer *g = make("g", T * W, 0, 0);
    struct sums *sum = make_sums("the sum", 1, OF_REALS);
    EACH_SIDE(i) start(i)->binary_entropy(T, 1, g->x[i], W, 1.0 / 3, NULL, sum->x[i]);
    compare(T, ANY_THREADS);
}

static void softmax(void) {
    for (int mask = 0; mask < 8; mask++) {
        long T = shape.T, W = mask & 1 ? shape.G : shape.D;
        long ld = W + (mask & 4 ? 8 : 2), lddp = W + (mask & 4 ? 4 : 1);
        operation = "softmax_gate";
        struct buffer *x = make("x", T * ld, -9, 9), *bias = make("bias", W, -1, 1);
        if (mask & 2) set(x, W - 1, ld, 200); /* a largest score that must not be missed */
        EACH_SIDE(i) start(i)->softmax_gate(T, W, bias->x[i], 1.25, x->x[i], ld);
        compare(W, ANY_THREADS);

        operation = "softmax_gate_back";
        struct buffer *p = make("p", T * ld, 0, 2.0 / (double)W), *dp = make("dp", T * lddp, -1, 1),
                      *counts = mask & 4 ? NULL : make_counts(T);
        set(p, 0, 7, 0);
        set(p, 1, 7, 1e-35); /* below the clamp of its logarithm */
        EACH_SIDE(i)
        start(i)->softmax_gate_back(T, W, 1.25, p->x[i], ld, mask & 2 ? 0.3 : 0, AT(counts, i), dp->x[i],
                                    lddp);
        compare(W, ANY_THREADS);
    }
}

static void entropies(void) {
    long T = shape.T, W = shape.D;
    for (int mask = 0; mask < 8; mask++) {
        long ld = W + (mask & 1 ? 4 : 2);
        struct buffer *g = make("g", T * ld, 0, 1), *counts = mask & 4 ? make_counts(T) : NULL;
        struct sums *sum = make_sums("the sum", 1, OF_REALS);
        set(g, 0, 7, 0);
        set(g, 1, 9, 1);
        operation = mask & 2 ? "softmax_entropy" : "binary_entropy";
        EACH_SIDE(i) {
            if (mask & 2)
                start(i)->softmax_entropy(T, W, g->x[i], ld, AT(counts, i), sum->x[i]);
            else
                start(i)->binary_entropy(T, W, g->x[i], ld, 1.0 / 3, AT(counts, i), sum->x[i]);
        }
        /* Terms have a few roundings of a real, a row may be summed as reals, but all else is in double. */
        compare(sizeof(real) == sizeof(float) ? W : T * W, ANY_THREADS);
    }
}

static void gram_rms(void) {
    long T = shape.T, W = shape.n * shape.Hd;
    for (int mask = 0; mask < 16; mask++) {
        long ld = W + (mask & 4 ? 4 : 2);
        operation = "gram_rms";
        struct buffer *v = make("v", T * ld, 0, 1), *q = make("q", T * ld, -0.2, 1),
                      *rms = make("rms", T, 0, 1);
        struct buffer *kv = mask & 1 ? make("kv", T * ld, 0, 1) : NULL,
                      *counts = mask & 8 ? make_counts(T) : NULL;
        if (!(mask & 2)) set(q, 0, 1, -0.1); /* squares below 0 */
        EACH_SIDE(i)
        start(i)->gram_rms(T, W, shape.D, v->x[i], mask & 2 ? 0.3 : 0, AT(counts, i), q->x[i], AT(kv, i), ld,
                           rms->x[i]);
        compare(W, ANY_THREADS);
    }
}

EVERYWHERE(silu)
EVERYWHERE(bottleneck)
EVERYWHERE(column_gates)
EVERYWHERE(clamped_gates)
EVERYWHERE(softmax)
EVERYWHERE(entropies)
EVERYWHERE(gram_rms)

int main(void) {
    const struct CMUnitTest tests[] = {
        OPERATION_TEST(test_silu),         OPERATION_TEST(test_bottleneck),
        OPERATION_TEST(test_column_gates), OPERATION_TEST(test_clamped_gates),
        OPERATION_TEST(test_softmax),      OPERATION_TEST(test_entropies),
        OPERATION_TEST(test_gram_rms),
    };
    return cmocka_run_group_tests(tests, describe_backends, NULL);
}
