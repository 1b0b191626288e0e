/* The whole model against finite differences (double build), the two projections against each other, and
 * generation against training's forward pass. With an argument n, of every n-th variant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/marks.h"
#include "tests/model/fixture.h"

enum { B = FIXTURE_BATCH, S = FIXTURE_LENGTH };
static int every = 1;

#ifdef GDN_DOUBLE
/* Central differences over a few elements of every tensor. Error of the quotient: h² times the third
 * derivative plus rounding eps/h; with h = 1e-5 both are about 1e-10, and losses are of order one; 2e-8
 * leaves room for tensors whose third derivative is large (`scale`, `norm`). */
static void test_finite_differences(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; fixture_variant(v, &c, &o); v += every) {
        for (int b = 0; test_backends()[b]; b++) {
            struct fixture f;
            struct loss_sums sums;
            int32_t rows[B * (S + 1)];
            const struct model_part part = {.padding = v % 4 >= 2};
            fixture_create_part(&f, &c, test_backends()[b], B, S, 3, 0.2, &part);
            fixture_rows(rows, c.vocab_size);
            if (v % 2) o.target_weight = fixture_uncount(rows);
            if (part.padding) o.token_weight = fixture_pad(rows);
            fixture_loss(&f, rows, B, S, &o, true, &sums);
            const bool drops = dropout_on(&c.dropout); /* as training passes alone do */
            real *gradient = malloc((size_t)f.table.total * sizeof *gradient);
            memcpy(gradient, f.state.gradient, (size_t)f.table.total * sizeof *gradient);
            for (int i = 0; i < f.table.rows; i++) {
                const struct row *row = &f.table.row[i];
                for (long j = 0; j < row->count; j += 1 + row->count / 7) {
                    real *w = f.state.weight + row->offset + j, kept = *w, g = gradient[row->offset + j];
                    const double h = 1e-5;
                    *w = kept + h;
                    double up = fixture_loss(&f, rows, B, S, &o, drops, &sums);
                    *w = kept - h;
                    double down = fixture_loss(&f, rows, B, S, &o, drops, &sums),
                           slope = (up - down) / (2 * h);
                    *w = kept;
                    if (!(fabs(slope - g) <= 2e-8 * (1 + fabs(g))))
                        fail_msg("variant %d, %s, %s[%ld]: gradient %.12g, difference %.12g", v,
                                 test_backends()[b]->name, row->name, j, g, slope);
                }
            }
            free(gradient);
            fixture_free(&f);
        }
    }
}
#endif

/* Direct and split maps are the same function: they differ by rounding, which split multiplies by ‖t‖/‖δ‖ (a
 * few here): 1e-5 and 1e-4 of the norm in float32, 1e-13 and 1e-11 in double. */
static void test_projections_agree(void **state) {
    (void)state;
    const bool wide = sizeof(real) == 8;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; fixture_variant(v, &c, &o); v += every) {
        struct fixture f[2];
        double loss[2];
        struct loss_sums sums;
        int32_t rows[B * (S + 1)];
        fixture_rows(rows, c.vocab_size);
        for (int projection = 0; projection < 2; projection++) {
            fixture_create(&f[projection], &c, test_backends()[0], B, S, 3, 0.2);
            model_set_projection(f[projection].model, projection ? PROJECTION_SPLIT : PROJECTION_DIRECT);
            loss[projection] = fixture_loss(&f[projection], rows, B, S, &o, true, &sums);
        }
        assert_true(fabs(loss[0] - loss[1]) <= (wide ? 1e-13 : 1e-5) * fabs(loss[0]));
        for (int i = 0; i < f[0].table.rows; i++) {
            const struct row *row = &f[0].table.row[i];
            double norm = 0, error = 0;
            for (long j = 0; j < row->count; j++) {
                double a = f[0].state.gradient[row->offset + j], b = f[1].state.gradient[row->offset + j];
                norm += a * a, error += (a - b) * (a - b);
            }
            if (!(sqrt(error) <= (wide ? 1e-11 : 1e-4) * (sqrt(norm) + 1e-3)))
                fail_msg("variant %d, %s: direct and split gradients differ by %g of %g", v, row->name,
                         sqrt(error), sqrt(norm));
        }
        fixture_free(&f[0]);
        fixture_free(&f[1]);
    }
}

/* Feeding tokens one by one gives the logits that the loss was computed from. The tolerance is float32's
 * rounding through a few dozen operations. */
static void test_decoder(void **state) {
    (void)state;
    struct model_config c;
    struct loss_options o;
    for (int v = 0; fixture_variant(v, &c, &o); v += every) {
        struct fixture f;
        struct loss_sums sums;
        struct decoder *decoder;
        int32_t rows[B * (S + 1)];
        fixture_create(&f, &c, test_backends()[0], B, S, 3, 0.2);
        fixture_rows(rows, c.vocab_size);
        model_loss(f.model, rows, B, S, &o, &sums);
        assert_int_equal(decoder_create(&c, &f.table, &f.state, test_backends()[0], S, 1, &decoder), 0);
        double ce = 0;
        for (int b = 0; b < B; b++) {
            decoder_reset(decoder);
            for (int s = 0; s < S; s++) {
                const real *logits = decoder_step(decoder, rows[b * (S + 1) + s], o.active);
                double sum = 0;
                for (int i = 0; i < c.vocab_size; i++) sum += exp((double)logits[i]);
                ce += log(sum) - (double)logits[rows[b * (S + 1) + s + 1]];
            }
        }
        if (!(fabs(ce - sums.ce) <= (sizeof(real) == 8 ? 1e-12 : 1e-5) * sums.ce))
            fail_msg("variant %d: %.9g one by one, %.9g at once", v, ce, sums.ce);
        decoder_free(decoder);
        fixture_free(&f);
    }
}

/* Tokens that are fed together have the bits that they have one by one, also in place of others that were
 * taken back: of all that a model computes, on the host, and where tokens may be taken back. */
static void test_together(void **state) {
    static const long count[] = {3, 1, 4,
                                 2}; /* the last of 4 is taken back, and comes with the last of all */
    enum { ALL = B * S - 1, MOST = 4 };
    (void)state;
    struct model_config c;
    struct loss_options o;
    const char *rules = getenv("GDN_TEST_RULES");
    if (!test_backends()[0]->device->host || getenv("GDN_TEST_MIXERS") || (rules && strpbrk(rules, "qkv")))
        skip();
    for (int v = 0; fixture_variant(v, &c, &o); v += every)
        for (int b = 0; test_backends()[b]; b++) {
            struct fixture f;
            struct decoder *decoder;
            int32_t rows[B * (S + 1)], *token = rows;
            fixture_create(&f, &c, test_backends()[b], B, S, 3, 0.2);
            fixture_rows(rows, c.vocab_size);
            const size_t bytes = (size_t)c.vocab_size * sizeof(real);
            char *expected = malloc(ALL * bytes);
            assert_int_equal(decoder_create(&c, &f.table, &f.state, test_backends()[b], ALL, MOST, &decoder),
                             0);
            for (int t = 0; t < ALL; t++)
                memcpy(expected + t * bytes, decoder_step(decoder, token[t], o.active), bytes);
            decoder_reset(decoder);
            for (long i = 0, at = 0; i < 4; at += count[i++]) {
                if (i == 3) decoder_take_back(decoder, 1), at--;
                const real *logits = decoder_feed(decoder, token + at, count[i], o.active);
                if (memcmp(logits, expected + at * bytes, count[i] * bytes) != 0)
                    fail_msg("variant %d, %s: tokens from %ld on", v, test_backends()[b]->name, at);
            }
            decoder_free(decoder);
            free(expected);
            fixture_free(&f);
        }
}

/* Rows of several documents that do not see each other are those documents in rows of their own: the same
 * losses and, added up, the same gradients, of everything that a model computes. */
static void test_documents(void **state) {
    static const int document[B * S] = {1, 0, 1, 0, 0, 0, 1, 1, 0, 0}; /* the second row goes on with one */
    const double tolerance = sizeof(real) == 8 ? 1e-12 : 2e-5;         /* rounding of other orders of sums */
    (void)state;
    struct model_config c;
    struct loss_options o;
    /* With some that know no documents. */
    const char *rules = getenv("GDN_TEST_RULES");
    if (getenv("GDN_TEST_MIXERS") || (rules && strpbrk(rules, "qkv"))) skip();
    for (int v = 0; fixture_variant(v, &c, &o); v += every)
        for (int b = 0; test_backends()[b]; b++) {
            struct fixture packed, apart;
            struct loss_sums sums, one, all = {0};
            int32_t rows[B * (S + 1)], marked[B * (S + 1)];
            c.dropout =
                (struct dropout_config){0}; /* what is dropped follows from a token's place in its row */
            const struct model_part masked = {.documents = true};
            fixture_create_part(&packed, &c, test_backends()[b], B, S, 3, 0.2, &masked);
            fixture_create(&apart, &c, test_backends()[b], B, S, 3, 0.2);
            fixture_rows(rows, c.vocab_size);
            memcpy(marked, rows, sizeof rows);
            for (int i = 0; i < B * S; i++)
                if (document[i]) marked[i / S * (S + 1) + i % S] |= MARK_DOCUMENT;
            fixture_loss(&packed, marked, B, S, &o, true, &sums);
            memset(apart.state.gradient, 0, (size_t)apart.table.total * sizeof(real));
            for (int i = 0, length; i < B * S; i += length) {
                for (length = 1; (i + length) % S && !document[i + length];) length++;
                model_train(apart.model, rows + i / S * (S + 1) + i % S, 1, length, &o, &one);
                all.ce += one.ce, all.sparsity += one.sparsity, all.entropy += one.entropy, all.z += one.z;
            }
            const double pairs[][2] = {{sums.ce, all.ce},
                                       {sums.sparsity, all.sparsity},
                                       {sums.entropy, all.entropy},
                                       {sums.z, all.z}};
            for (int i = 0; i < 4; i++)
                if (!(fabs(pairs[i][0] - pairs[i][1]) <= tolerance * fabs(pairs[i][1])))
                    fail_msg("variant %d: sum %d is %.9g packed, %.9g apart", v, i, pairs[i][0], pairs[i][1]);
            double norm = 0, error = 0;
            for (long i = 0; i < packed.table.total; i++) {
                double x = apart.state.gradient[i], y = packed.state.gradient[i];
                norm += x * x, error += (x - y) * (x - y);
            }
            if (!(sqrt(error) <= 10 * tolerance * sqrt(norm)))
                fail_msg("variant %d: gradients differ by %g of their norm", v, sqrt(error / norm));
            fixture_free(&packed);
            fixture_free(&apart);
        }
}

/* A connection that is not introduced yet has no gradient at all, and changes nothing. */
static void test_inactive(void **state) {
    (void)state;
    struct model_config c = small_model();
    struct fixture f;
    struct loss_sums sums;
    int32_t rows[B * (S + 1)];
    struct edges edges;
    if (!c.delta.num_distances) skip(); /* a rule that stands without them */
    assert_int_equal(edges_create(&c, &edges), 0);
    fixture_create(&f, &c, test_backends()[0], B, S, 3, 0.2);
    fixture_rows(rows, c.vocab_size);
    struct loss_options o = fixture_options(&c, 1, true);
    double before = fixture_loss(&f, rows, B, S, &o, true, &sums);
    int idle = 0, inactive = 0;
    for (int i = 0; i < f.table.rows; i++) {
        const struct row *row = &f.table.row[i];
        if (params_active(row, o.active)) continue;
        idle++;
        for (long j = 0; j < row->count; j++) {
            assert_true(f.state.gradient[row->offset + j] == 0);
            f.state.weight[row->offset + j] = 100;
        }
    }
    for (int e = 0; e < edges.count; e++) inactive += !edge_set_has(o.active, e);
    assert_true(inactive >= 3);
    assert_int_equal(idle, inactive * 7); /* seven tensors each */
    assert_true(fixture_loss(&f, rows, B, S, &o, false, &sums) == before);
    edges_free(&edges);
    fixture_free(&f);
}

enum { MOST_WEIGHTS = 64 };
static const real *weight_of[MOST_WEIGHTS];
static int weights_seen, weights_wrong;

static void spy(int id, char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                const real *b, long ldb, real beta, real *c, long ldc) {
    if (id < 0 || id >= MOST_WEIGHTS) {
        weights_wrong++;
    } else if (tb == 'T') { /* forward: b is the weight */
        weights_wrong += weight_of[id] && weight_of[id] != b;
        weights_seen += !weight_of[id];
        weight_of[id] = b;
    }
    test_backends()[0]->linear(id, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

enum { MOST_LAYERS = 16 };
static const real *queries_of[MOST_LAYERS]; /* Wq of each layer */
static int queries_apart[MOST_LAYERS];      /* products with it that have no number */

static void spy_gemm(char ta, char tb, long m, long n, long k, real alpha, const real *a, long lda,
                     const real *b, long ldb, real beta, real *c, long ldc) {
    for (int l = 0; l < MOST_LAYERS; l++) queries_apart[l] += tb == 'T' && b == queries_of[l];
    test_backends()[0]->gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* Each product with a weight has a number of its own, and model_weight_ids counts them: also those of
 * queries, keys and values that have none as a rule projects some of them. */
static void test_weight_ids(void **state) {
    (void)state;
    struct model_config c = small_model();
    struct ops ops = *test_backends()[0];
    struct fixture f;
    struct loss_sums sums;
    int32_t rows[B * (S + 1)];
    ops.linear = spy, ops.gemm = spy_gemm;
    fixture_create(&f, &c, &ops, B, S, 3, 0.2);
    for (int i = 0, l; i < f.table.rows; i++)
        if (sscanf(f.table.row[i].name, "layers.%d.", &l) == 1 &&
            strstr(f.table.row[i].name, "q_proj.weight"))
            queries_of[l] = f.state.weight + f.table.row[i].offset;
    fixture_rows(rows, c.vocab_size);
    struct loss_options o = fixture_options(&c, -1, false);
    fixture_loss(&f, rows, B, S, &o, true, &sums);
    assert_int_equal(weights_wrong, 0);
    int ids = model_weight_ids(&c), apart = 0;
    for (int l = 0; l < c.num_layers; l++) {
        bool numbered = !queries_of[l]; /* another mixer's have all theirs */
        for (int id = 0; id < ids; id++) numbered = numbered || weight_of[id] == queries_of[l];
        assert_true(numbered || queries_apart[l]);
        apart += !numbered;
    }
    assert_int_equal(weights_seen + apart, ids);
    for (int i = 0; i < ids; i++)
        for (int j = 0; j < i && weight_of[i]; j++) assert_ptr_not_equal(weight_of[i], weight_of[j]);
    fixture_free(&f);
}

int main(int argc, char **argv) {
    if (argc > 1) every = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
#ifdef GDN_DOUBLE
        cmocka_unit_test(test_finite_differences),
#endif
        cmocka_unit_test(test_projections_agree),  cmocka_unit_test(test_decoder),
        cmocka_unit_test(test_together),           cmocka_unit_test(test_weight_ids),
        cmocka_unit_test(test_inactive),           cmocka_unit_test(test_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
