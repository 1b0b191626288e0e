/* Delta connections: differences, contributions, weights and mixing of every backend against the reference at
 * odd shapes, with row distances beyond the width, odd ones and multiples of four, and with every combination
 * of optional arguments. All operations give the same bits for every number of threads. */
#include "tests/kernels/ops/delta_shapes.h"

#include <math.h>
#include <string.h>

static void vectors(void) {
    long T = shape.T, D = shape.D;
    for (int mask = 0; mask < 4; mask++) {
        struct buffer *t = make("t", T * D, -2, 2), *s = make("s", T * D, -2, 2), *a = NULL, *b = NULL;
        operation = "delta_mean";
        if (mask & 1) a = make("delta", T * D, 0, 1);
        if (mask & 2) b = make("mean", T * D, 0, 1);
        EACH_SIDE(i) start(i)->delta_mean(T, D, t->x[i], s->x[i], AT(a, i), AT(b, i));
        compare(D, ANY_THREADS);

        operation = "delta_spread";
        t = make("t", T * D, -2, 2), s = make("s", T * D, -2, 2), a = b = NULL;
        struct buffer *dt = make("dt", T * D, -1, 1), *ds = make("ds", T * D, -1, 1);
        if (mask & 1) a = make("d", T * D, -1, 1);
        if (mask & 2) b = make("k", T, -1, 1);
        EACH_SIDE(i) start(i)->delta_spread(T, D, AT(a, i), AT(b, i), t->x[i], s->x[i], dt->x[i], ds->x[i]);
        compare(D, ANY_THREADS);

        operation = "delta_magnitude";
        t = make("t", T * D, -2, 2), s = make("s", T * D, -2, 2), a = NULL;
        struct buffer *e = make("e", T * 3, -2, 2), *square = make("square", T, -2, 2);
        if (mask & 1) a = make("r", T, 0.5, 2);
        EACH_SIDE(i)
        start(i)->delta_magnitude(T, D, t->x[i], s->x[i], AT(a, i), 1e-3, e->x[i], 3, square->x[i]);
        compare(D, ANY_THREADS);
    }
    operation = "delta_inverse_norm";
    struct buffer *t = make("t", T * D, -2, 2), *s = make("s", T * D, -2, 2), *inv = make("inv", T, 0, 1);
    EACH_SIDE(i) memcpy(s->x[i], t->x[i], (size_t)D * sizeof(real)); /* the first row below the least norm */
    EACH_SIDE(i) start(i)->delta_inverse_norm(T, D, t->x[i], s->x[i], 1e-3, inv->x[i]);
    synchronize();
    EACH_SIDE(i) inv->x[i][0] *= (real)1e-3; /* so that it does not set the tolerance of the others */
    compare(D, ANY_THREADS);
}

static void gated_delta(void) {
    long T = shape.T, D = shape.D, n = shape.n;
    for (int mask = 0; mask < 24; mask++) {
        long G = mask & 1 ? D : shape.G, ldg = G + (mask < 8 ? 3 : 4), ldo = D + (mask < 8 ? 5 : 4);
        long ldw = mask < 8 ? 0 : n;
        bool add = mask & 4;
        struct buffer *r = NULL, *rms = NULL, *weight = NULL;
        for (int back = 0; back < 2; back++) {
            operation = back ? "gated_delta_back" : "gated_delta";
            struct buffer *t = make("t", T * D, -2, 2), *s = make("s", T * D, -2, 2);
            struct buffer *gate = make("gate", T * ldg, 0, 1), *out = make("out", T * ldo, -1, 1);
            r = mask & 2 ? make("r", T, 0.5, 2) : NULL;
            rms = mask & 4 ? make("rms", T, 0.5, 1) : NULL;
            if (rms && back) set(rms, 2, 3, 0); /* padding's */
            weight = mask < 16 ? make("weight", T * n, -1, 1) : NULL;
            if (!back) {
                EACH_SIDE(i)
                start(i)->gated_delta(T, D, G, t->x[i], s->x[i], gate->x[i], ldg, AT(r, i), 0.8,
                                      AT(weight, i), ldw, add, out->x[i], ldo, AT(rms, i));
            } else {
                struct buffer *dweight = make("dweight", T * n, -1, 1), *dgate = make("dgate", T * G, -1, 1);
                struct buffer *dd = make("dd", T * D, -1, 1), *dr = make("dr", T, -1, 1);
                EACH_SIDE(i)
                start(i)->gated_delta_back(T, D, G, t->x[i], s->x[i], gate->x[i], ldg, AT(r, i), 0.8,
                                           AT(weight, i), ldw, out->x[i], ldo, AT(rms, i), 0.3, dweight->x[i],
                                           n, dgate->x[i], dd->x[i], r ? dr->x[i] : NULL);
            }
            compare(D, ANY_THREADS);
        }
    }
}

/* One number a token, of so many that a backend may sum them in parts. Sums over tokens are in order, so
 * their terms count like products. */
static void rows(void) {
    long T = 7 * shape.T, D = shape.D, n = shape.n;
    for (int mask = 0; mask < 4; mask++) {
        operation = "row_factors";
        struct buffer *gamma = make("gamma", 1, 2, 3), *inv = make("inv", T, 0.1, 1), *r = make("r", T, 0, 1);
        EACH_SIDE(i) start(i)->row_factors(T, gamma->x[i], inv->x[i], r->x[i]);
        compare(1, ANY_THREADS);

        operation = "row_factors_back";
        gamma = make("gamma", 1, 2, 3), inv = make("inv", T, 0.1, 1);
        set(inv, 0, 3, 1); /* norms below the least one */
        struct buffer *dr = make("dr", T, -1, 1), *k = make("k", T, -1, 1),
                      *dgamma = make("dgamma", 1, -1, 1);
        EACH_SIDE(i)
        start(i)->row_factors_back(T, gamma->x[i], inv->x[i], 1, dr->x[i], k->x[i], dgamma->x[i]);
        compare(T, ANY_THREADS);

        operation = "delta_magnitude_back";
        r = mask & 1 ? make("r", T, 0.5, 2) : NULL;
        struct buffer *e = make("e", T, 0.5, 2), *square = make("square", T, 0, 2),
                      *de = make("de", T, -1, 1);
        k = make("k", T, -1, 1), dr = make("dr", T, -1, 1);
        EACH_SIDE(i)
        start(i)->delta_magnitude_back(T, D, AT(r, i), e->x[i], square->x[i], de->x[i], k->x[i],
                                       r ? dr->x[i] : NULL);
        compare(1, ANY_THREADS);

        for (int back = 0; back < 2; back++) {
            operation = back ? "connection_weights_back" : "connection_weights";
            long step = 2, lda = n * step + 1;
            struct buffer *alpha = mask & 1 ? make("alpha", T * lda, 0, 1) : NULL;
            struct buffer *mix = mask & 2 ? make("mix", n, -1, 1) : NULL;
            struct buffer *weight = make("weight", T * n, -1, 1);
            struct buffer *dmix = mask & 2 ? make("dmix", n, -1, 1) : NULL;
            struct buffer *dalpha = mask & 1 ? make("dalpha", T * lda, -1, 1) : NULL;
            EACH_SIDE(i) {
                if (back)
                    start(i)->connection_weights_back(T, n, AT(alpha, i), lda, step, (real)0.3, AT(mix, i),
                                                      weight->x[i], AT(dmix, i), AT(dalpha, i));
                else
                    start(i)->connection_weights(T, n, AT(alpha, i), lda, step, (real)0.3, AT(mix, i),
                                                 weight->x[i]);
            }
            compare(T, ANY_THREADS);
        }
    }
    operation = "add_up";
    struct buffer *x = make("x", T * D, -1, 1);
    struct sums *sum = make_sums("the sum", 1, OF_DOUBLES);
    EACH_SIDE(i) start(i)->add_up(T * D, x->x[i], sum->x[i]);
    compare(T * D, ANY_THREADS);
    operation = "squares";
    x = make("x", T * D, -1, 1);
    EACH_SIDE(i) start(i)->squares(T * D, x->x[i]);
    compare(1, ANY_THREADS);
    operation = "root_means";
    x = make("x", T * D, 0.1, 1);
    EACH_SIDE(i) start(i)->root_means(T * D, 3, x->x[i]);
    compare(1, ANY_THREADS);
}

static void columns(void) {
    long T = shape.T, W = shape.D, ldy = W + 5;
    for (int way = 0; way < 4; way++) {
        const bool add = way & 1;
        long ldx = way & 2 ? 0 : W + 3; /* 0: the same row */
        operation = add ? "add_columns" : "copy_columns";
        struct buffer *x = make("x", ldx ? T * ldx : W + 1, -1, 1), *y = make("y", T * ldy, -1, 1);
        EACH_SIDE(i) {
            if (add)
                start(i)->add_columns(T, W, (real)0.3, x->x[i] + 1, ldx, y->x[i] + 2, ldy);
            else
                start(i)->copy_columns(T, W, x->x[i] + 1, ldx, y->x[i] + 2, ldy);
        }
        compare(1, ANY_THREADS);
    }
}

static void mixing(void) {
    long T = shape.T, D = shape.D, n = shape.n, a = shape.a, heads = shape.heads;
    for (int back = 0; back < 2; back++) {
        operation = back ? "select_back" : "select";
        struct buffer *query = make("query", T * a, -1, 1), *key = make("key", T * n * a, -1, 1);
        struct buffer *rt = make("rt", T, 0.5, 2), *rs = make("rs", n * T, 0.5, 2);
        struct buffer *weight = make("weight", T * n, 0, 2.0 / (double)n),
                      *dweight = make("dweight", T * n, -1, 1);
        struct buffer *ct = make("ct", T, 0, 1), *cs = make("cs", n * T, 0, 1);
        EACH_SIDE(i) {
            const real *rows[OPS_CONNECTIONS];
            for (long k = 0; k < n; k++) rows[k] = rs->x[i] + k * T;
            if (back)
                start(i)->select_back(T, n, a, D, query->x[i], key->x[i], rt->x[i], rows, weight->x[i],
                                      dweight->x[i], ct->x[i], cs->x[i]);
            else
                start(i)->select(T, n, a, query->x[i], key->x[i], rt->x[i], rows, weight->x[i]);
            for (long k = 0; k < n; k++) rows[k] = NULL;
        }
        synchronize();
        set(dweight, 0, 1, 0); /* consumed by the backward pass: what is left there is no result */
        compare(n * a, ANY_THREADS);

        operation = back ? "multihead_back" : "multihead";
        query = make("query", T * D, -1, 1), key = make("key", T * n * D, -0.3, 0.3);
        weight = make("weight", T * n * heads, 0, 2.0 / (double)n);
        struct buffer *c = make("c", T * n * D, -1, 1), *dc = make("dc", T * n * D, 0, 1);
        struct buffer *z = make("z", T * D, -1, 1);
        EACH_SIDE(i) {
            if (back)
                start(i)->multihead_back(T, n, D, heads, query->x[i], key->x[i], c->x[i], weight->x[i],
                                         z->x[i], dc->x[i]);
            else
                start(i)->multihead(T, n, D, heads, query->x[i], key->x[i], c->x[i], weight->x[i], z->x[i]);
        }
        compare(n * D / heads, ANY_THREADS);
    }
}

/* A NaN anywhere must reach the result, and through it the loss, by which divergence is noticed. */
static void nan_is_seen(void) {
    long T = shape.T, D = shape.D, last = T * D - 1;
    struct buffer *x = make("x", T * D, 0, 1), *y = make("y", T * D, 0, 1), *row = make("row", T, 0, 1);
    struct sums *sum = make_sums("sum", 2, OF_REALS);
    const struct ops *ops = start(ONE_THREAD);
    real *nan = x->x[ONE_THREAD], *out = y->x[ONE_THREAD], *of_row = row->x[ONE_THREAD];
    const real *other = y->x[THREE_THREADS];
    double *entropy = sum->x[ONE_THREAD];
    nan[last] = (real)NAN;
    ops->delta_inverse_norm(T, D, nan, other, 1e-3, of_row);
    synchronize();
    assert_true(isnan(of_row[T - 1]) && (T == 1 || !isnan(of_row[T - 2])));
    ops->delta_magnitude(T, D, nan, other, NULL, 1e-3, of_row, 1, out);
    synchronize();
    assert_true(isnan(of_row[T - 1]) && isnan(out[T - 1]) && (T == 1 || !isnan(of_row[T - 2])));
    ops->gated_delta(T, D, D, nan, other, other, D, NULL, 1, NULL, 0, false, out, D, of_row);
    synchronize();
    assert_true(isnan(of_row[T - 1]) && isnan(out[last]) && !isnan(out[last - 1]));
    ops->sigmoid_gate(T, D, 1, NULL, nan, out, D);
    synchronize();
    assert_true(isnan(out[last]) && !isnan(out[last - 1]));
    ops->bias_silu(T, D, other, nan, out);
    synchronize();
    assert_true(isnan(out[last]) && !isnan(out[last - 1]));
    ops->silu(T * D, nan, out);
    synchronize();
    assert_true(isnan(out[last]) && !isnan(out[last - 1]));
    ops->binary_entropy(T, D, nan, D, 1, NULL, &entropy[0]);
    ops->softmax_entropy(T, D, nan, D, NULL, &entropy[1]);
    ops->copy(T * D, nan, out);
    ops->gram_rms(T, D, D, other, 0, NULL, out, NULL, D, of_row);
    ops->softmax_gate(T, D, other, 1, nan, D);
    synchronize();
    assert_true(isnan(entropy[0]) && isnan(entropy[1]));
    assert_true(isnan(of_row[T - 1]) && (T == 1 || !isnan(of_row[T - 2])));
    for (long j = last - D + 1; j <= last; j++) assert_true(isnan(nan[j]));
    release();
}

/* What a layer computes again on the way back must have the bits of the way forward, by whichever
 * operation. */
static void same_bits(void) {
    long T = shape.T, D = shape.D;
    size_t bytes = (size_t)(T * D) * sizeof(real);
    struct buffer *x = make("x", T * D, -3, 3), *bias = make("bias", D, -1, 1), *r = make("r", T * D, -3, 3),
                  *a = make("a", T * D, 0, 1), *b = make("b", T * D, 0, 1), *sum = make("sum", T * D, 0, 1),
                  *rstd = make("rstd", 2 * T, 0, 1), *gate = make("gate", T * D, 0, 1);
    EACH_SIDE(i) {
        const struct ops *ops = start(i);
        ops->bias_silu(T, D, bias->x[i], x->x[i], a->x[i]);
        ops->silu(T * D, x->x[i], b->x[i]);
        synchronize();
        assert_memory_equal(a->x[i], b->x[i], bytes);
        ops->add_rms_norm(T, D, x->x[i], r->x[i], bias->x[i], 1e-5, sum->x[i], a->x[i], rstd->x[i]);
        ops->rms_norm(T, D, sum->x[i], bias->x[i], 1e-5, b->x[i], rstd->x[i] + T);
        synchronize();
        assert_memory_equal(a->x[i], b->x[i], bytes);
        assert_memory_equal(rstd->x[i], rstd->x[i] + T, (size_t)T * sizeof(real));
        ops->gated_delta(T, D, shape.G, x->x[i], r->x[i], gate->x[i], shape.G, NULL, 0.7, NULL, 0, false,
                         a->x[i], D, rstd->x[i]);
        ops->gated_delta(T, D, shape.G, x->x[i], r->x[i], gate->x[i], shape.G, NULL, 0.7, NULL, 0, false,
                         b->x[i], D, NULL);
        synchronize();
        assert_memory_equal(a->x[i], b->x[i], bytes);
    }
    release();
}

EVERYWHERE(vectors)
EVERYWHERE(gated_delta)
EVERYWHERE(rows)
EVERYWHERE(columns)
EVERYWHERE(mixing)
EVERYWHERE(nan_is_seen)
EVERYWHERE(same_bits)

int main(void) {
    const struct CMUnitTest tests[] = {
        OPERATION_TEST(test_vectors),   OPERATION_TEST(test_gated_delta), OPERATION_TEST(test_rows),
        OPERATION_TEST(test_columns),   OPERATION_TEST(test_mixing),      OPERATION_TEST(test_nan_is_seen),
        OPERATION_TEST(test_same_bits),
    };
    return cmocka_run_group_tests(tests, describe_backends, NULL);
}
