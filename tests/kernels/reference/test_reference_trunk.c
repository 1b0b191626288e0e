/* The reference's trunk: forward passes against formulas written here in another way, backward passes against
 * finite differences of the forward ones (in a GDN_DOUBLE build, where differences have the digits). */
#include "kernels/backends/backends.h"
#include "kernels/base/decay.h"
#include "kernels/base/marks.h"
#include "tests/kernels/reference/reference.h"

#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------------------------- matrices and vectors */

static void gemm(void **state) {
    (void)state;
    /* [[1 2 3] [4 5 6]] · [[1 0] [2 1] [0 3]] = [[5 11] [14 23]] */
    const real a[] = {1, 2, 3, 4, 5, 6}, at[] = {1, 4, 2, 5, 3, 6}, b[] = {1, 0, 2, 1, 0, 3},
               bt[] = {1, 2, 0, 0, 1, 3};
    const real expected[] = {5, 11, 14, 23};
    for (int mask = 0; mask < 4; mask++) {
        real c[] = {1, 1, NAN, 1, 1, NAN}; /* rows are 3 apart */
        ops->gemm(mask & 1 ? 'T' : 'N', mask & 2 ? 'T' : 'N', 2, 2, 3, 2, mask & 1 ? at : a, mask & 1 ? 2 : 3,
                  mask & 2 ? bt : b, mask & 2 ? 3 : 2, -1, c, 3);
        for (int i = 0; i < 4; i++) check_near("gemm", c[i / 2 * 3 + i % 2], 2 * expected[i] - 1);
        assert_true(isnan(c[2]) && isnan(c[5]));
        c[0] = NAN; /* not read with beta 0 */
        ops->gemm('N', 'N', 2, 2, 3, 1, a, 3, b, 2, 0, c, 3);
        check_near("gemm", c[0], 5);
    }
}

static void vectors(void **state) {
    (void)state;
    real x[] = {1, 2, 3, 4, 5, 6}, y[] = {10, 20, 30, 40, 50, 60}, z[6], c[] = {2, -1}, sum[] = {100, 200};
    ops->add_to(6, x, y, z);
    check_near("add_to", z[5], 66);
    ops->add(6, x, z);
    check_near("add", z[5], 72);
    ops->add_scaled_rows(2, 3, c, x, y);
    check_near("add_scaled_rows", y[2], 36);
    check_near("add_scaled_rows", y[3], 36);
    ops->add_column_sums(2, 2, x, 3, sum); /* rows 3 apart */
    check_near("add_column_sums", sum[0], 105);
    check_near("add_column_sums", sum[1], 207);
    double square[] = {1, 2, 3};
    ops->add_squares(1, 4, 2, x, square); /* blocks of two, the first and the last by half */
    check_near("add_squares", square[0], 5);
    check_near("add_squares", square[1], 27);
    check_near("add_squares", square[2], 28);
    real factor[] = {-2}, product[] = {1};
    ops->add_dot(3, x, x + 3, product); /* 4 + 10 + 18 */
    check_near("add_dot", product[0], 33);
    ops->copy(6, x, z);
    ops->scale(5, factor, z);
    check_near("scale", z[4], -10);
    check_near("scale", z[5], 6);
    real pieces[] = {1, 2, 30, 40, 500, 600};
    ops->add_parts(2, 3, pieces, pieces);
    check_near("add_parts", pieces[0], 531);
    check_near("add_parts", pieces[1], 642);
    check_near("add_parts", pieces[2], 30);
    real values[] = {1, -2, -3, -4, (real)NAN, -1}, greatest[2];
    ops->max_parts(2, 2, values, greatest);
    check_near("max_parts", greatest[0], 1);
    check_near("max_parts", greatest[1], -2);
    for (int first = 0; first < 2; first++) { /* NaN first, and last */
        real either[] = {first ? (real)NAN : 1, 5, first ? 1 : (real)NAN, 6};
        ops->max_parts(2, 2, either, greatest);
        assert_true(isnan(greatest[0]));
        check_near("max_parts", greatest[1], 6);
    }
    ops->copy(6, x, z);
    assert_memory_equal(x, z, sizeof x);
    ops->zero(5, z);
    check_near("zero", z[4], 0);
    check_near("zero", z[5], 6);
}

/* Two steps from zero moments, as model.md's formula reads; updates are above 0. */
static void adamw_from(double w0, bool cautious) {
    const double lr = 0.1, b1 = 0.9, b2 = 0.99, eps = 1e-8, gscale = 0.5, gradient[] = {3, -1};
    double m0 = 0, v0 = 0, decay = 0.2, decays = cautious && w0 < 0 ? 0 : decay;
    real w = (real)w0, m = 0, v = 0;
    for (int n = 1; n <= 2; n++) {
        real g = (real)gradient[n - 1];
        ops->adamw(1, &w, &g, &m, &v, gscale, lr, b1, b2, eps, decay, cautious, 1 - pow(b1, n),
                   1 - pow(b2, n));
        m0 = b1 * m0 + (1 - b1) * gradient[n - 1] * gscale;
        v0 = b2 * v0 + (1 - b2) * pow(gradient[n - 1] * gscale, 2);
        w0 -= lr * decays * w0;
        w0 -= lr * m0 / (1 - pow(b1, n)) / (sqrt(v0 / (1 - pow(b2, n))) + eps);
        check_near("w", w, w0), check_near("m", m, m0), check_near("v", v, v0);
    }
}

static void adamw(void **state) {
    (void)state;
    for (int cautious = 0; cautious < 2; cautious++) adamw_from(2, cautious), adamw_from(-2, cautious);
}

/* Where decay works against an update: by signs, however small; not where nothing is updated. */
static void opposed(void **state) {
    const real tiny = (real)1e-30;
    (void)state;
    assert_true(decay_opposed(tiny, -tiny) && decay_opposed(-tiny, tiny));
    assert_false(decay_opposed(tiny, tiny) || decay_opposed(-tiny, -tiny));
    for (int sign = -1; sign < 2; sign++)
        assert_false(decay_opposed(0, (real)sign) || decay_opposed((real)sign, 0) ||
                     decay_opposed((real)-0.0, (real)sign));
}

/* What the marks of tokens say. A document that starts at the last token of a row starts at no input. */
static void marks(void) {
    enum { DOCUMENT = MARK_DOCUMENT, MUTE = MARK_UNCOUNTED };
    const int32_t rows[] = {7 | MUTE,
                            8,
                            9 | DOCUMENT | MUTE,
                            7,
                            MARK_TOKEN | DOCUMENT,
                            5 | DOCUMENT,
                            6 | MUTE | DOCUMENT,
                            4 | MUTE | MARK_PADDING,
                            3,
                            2},
                  cut[][8] = {{7, 8, 9, 7, 5, 6, 4, 3},
                              {8, -1, 7, MARK_TOKEN, -1, -1, 3, 2},
                              {0, 0, 2, 2, 0, 1, 1, 1}};
    int32_t input[8], target[8], start[8];
    real counts[8];
    ops->cut_tokens(2, 4, rows, input, target, start, counts);
    assert_memory_equal(input, cut[0], sizeof input);
    assert_memory_equal(target, cut[1], sizeof target);
    assert_memory_equal(start, cut[2], sizeof start);
    for (int t = 0; t < 8; t++) assert_true(counts[t] == (t == 6 ? 0 : 1));
    memset(start, 1, sizeof start);
    ops->cut_tokens(2, 4, rows, NULL, NULL, start, NULL);
    assert_memory_equal(start, cut[2], sizeof start);
}

static void embed(void **state) {
    enum { T = 4, D = 3, V = 5 };
    const int32_t token[T] = {2, 0, 2, 4};
    real E[V * D], x[T * D], dE[V * D] = {0};
    (void)state;
    const int32_t rows[] = {1, 2, 3, 4, 5, 6}, cut[][4] = {{1, 2, 4, 5}, {2, 3, 5, 6}};
    int32_t input[4], target[4];
    ops->cut_tokens(2, 2, rows, input, target, NULL, NULL);
    assert_memory_equal(input, cut[0], sizeof input);
    assert_memory_equal(target, cut[1], sizeof target);
    marks();
    FILL(E, -1, 1);
    ops->embed(T, D, token, 0, V, E, x);
    for (int i = 0; i < T * D; i++) assert_true(x[i] == E[token[i / D] * D + i % D]);
    ops->embed_back(T, D, token, 0, V, x, dE); /* of Σ x²/2 */
    for (int i = 0; i < V * D; i++)
        check_near("dE", dE[i], (i / D == 2 ? 2 : i / D == 0 || i / D == 4) * E[i]);

    /* Rows 1 to 3 of the vocabulary: of the tokens only those that are 2. */
    memset(dE, 0, sizeof dE);
    ops->embed(T, D, token, 1, 3, E + D, x);
    for (int i = 0; i < T * D; i++) assert_true(x[i] == (token[i / D] == 2 ? E[2 * D + i % D] : 0));
    for (int i = 0; i < T * D; i++) x[i] = 1;
    ops->embed_back(T, D, token, 1, 3, x, dE + D);
    for (int i = 0; i < V * D; i++) assert_true(dE[i] == (i / D == 2 ? 2 : 0));
}

/* ---------------------------------------------------------------------------------------------- attention */

/* Rotation of the complex numbers x[j] + i·x[j + hd/2] by the position's angles. */
static void rotate(const int32_t *start) {
    enum { T = 6, S = 3, HEADS = 2, HD = 4, LD = 9, FROM = 2 };
    real cosine[(FROM + S) * HD / 2], sine[(FROM + S) * HD / 2], x[T * LD], y[T * LD];
    for (int i = 0; i < (FROM + S) * HD / 2; i++)
        cosine[i] = (real)cos(0.3 * (i / 2) / (1 + i % 2)), sine[i] = (real)sin(0.3 * (i / 2) / (1 + i % 2));
    FILL(x, -1, 1);
    memcpy(y, x, sizeof x);
    ops->rope(T, S, FROM, start, HEADS, HD, cosine, sine, 1, y, LD);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < HEADS; h++)
            for (int j = 0; j < 2; j++) {
                double angle = 0.3 * (FROM + t % S - (start ? start[t] : 0)) / (1 + j);
                long low = t * LD + h * HD + j, high = low + 2;
                check_near("low", y[low], x[low] * cos(angle) - x[high] * sin(angle));
                check_near("high", y[high], x[low] * sin(angle) + x[high] * cos(angle));
            }
    check_near("padding", y[LD - 1], x[LD - 1]);
    ops->rope(T, S, FROM, start, HEADS, HD, cosine, sine, -1, y, LD);
    for (int i = 0; i < T * LD; i++) check_near("back", y[i], x[i]);
}

static void rope(void **state) {
    (void)state;
    rotate(NULL);
    rotate((const int32_t[]){0, 1, 1, 0, 0, 2}); /* positions of documents */
}

enum { B = 2, S = 5, H = 4, K = 2, HD = 6, W = (H + 2 * K) * HD };
static struct {
    real qkv[B * S * W], dout[B * S * H * HD];
    const int32_t *start;
} heads;

static double attention_loss(const void *context) {
    (void)context;
    real o[B * S * H * HD], lse[B * H * S];
    ops->attention(B, S, H, K, HD, NULL, heads.start, heads.qkv, o, lse);
    return dot(B * S * H * HD, o, heads.dout);
}

static void attend(const int32_t *start, real *o) {
    static real lse[B * H * S], dqkv[B * S * W], work[B * H * S];
    heads.start = start;
    FILL(heads.qkv, -2, 2);
    FILL(heads.dout, -1, 1);
    ops->attention(B, S, H, K, HD, NULL, heads.start, heads.qkv, o, lse);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++) {
            double weight[S][S] = {{0}}; /* the whole matrix, which the operation never forms */
            for (int i = 0; i < S; i++) {
                const real *q = heads.qkv + (b * S + i) * W + h * HD;
                double sum = 0;
                for (int j = start ? start[b * S + i] : 0; j <= i; j++)
                    sum += weight[i][j] =
                        exp(dot(HD, q, heads.qkv + (b * S + j) * W + (H + h / 2) * HD) / sqrt(HD));
                check_near("lse", lse[(b * H + h) * S + i], log(sum));
                for (int c = 0; c < HD; c++) {
                    double expected = 0;
                    for (int j = 0; j < S; j++)
                        expected +=
                            weight[i][j] / sum * heads.qkv[(b * S + j) * W + (H + K + h / 2) * HD + c];
                    check_near("o", o[(b * S + i) * H * HD + h * HD + c], expected);
                }
            }
        }
    ops->attention_back(B, S, H, K, HD, NULL, heads.start, heads.qkv, o, lse, heads.dout, dqkv, work);
    check_gradients(attention_loss, NULL, (struct input[]){{"qkv", B * S, W, heads.qkv, W, dqkv, W}, {0}});
}

static void attention(void **state) {
    static const int32_t start[] = {0, 0, 2, 2, 2, 0, 1, 2, 2, 4};
    static real o[B * S * H * HD];
    (void)state;
    attend(start, o);
    attend(NULL, o);

    /* The last position of the first sequence, decoded from a cache. */
    real keys[S * K * HD], values[S * K * HD], last[H * HD];
    for (int i = 0; i < S; i++) {
        memcpy(keys + i * K * HD, heads.qkv + i * W + H * HD, K * HD * sizeof(real));
        memcpy(values + i * K * HD, heads.qkv + i * W + (H + K) * HD, K * HD * sizeof(real));
    }
    ops->attention_decode(S, H, K, HD, heads.qkv + (S - 1) * W, keys, values, last);
    for (int i = 0; i < H * HD; i++) check_near("decoded", last[i], o[(S - 1) * H * HD + i]);
}

/* ------------------------------------------------------------------------------------------- MLP and loss */

static struct { real gu[2 * 6], dh[2 * 3]; } mlp;

static double swiglu_loss(const void *context) {
    (void)context;
    real h[6];
    ops->swiglu(2, 3, mlp.gu, h);
    return dot(6, h, mlp.dh);
}

static void swiglu(void **state) {
    real h[6], again[6], dgu[12];
    (void)state;
    FILL(mlp.gu, -3, 3);
    FILL(mlp.dh, -1, 1);
    ops->swiglu(2, 3, mlp.gu, h);
    for (int i = 0; i < 6; i++) {
        double g = mlp.gu[i / 3 * 6 + i % 3], u = mlp.gu[i / 3 * 6 + 3 + i % 3];
        check_near("h", h[i], g * u * (0.5 + 0.5 * tanh(g / 2)));
    }
    ops->swiglu_back(2, 3, mlp.gu, mlp.dh, dgu, again);
    assert_memory_equal(h, again, sizeof h);
    check_gradients(swiglu_loss, NULL, (struct input[]){{"gu", 2, 6, mlp.gu, 6, dgu, 6}, {0}});
}

static const int32_t target[] = {3, 0};
static real logits[2 * 5]; /* 4 columns, rows 5 apart */
static double logit_cap, z_weight;

/* 0.25·Σ (loss + z·lse²) of logits before their cap. */
static double cross_entropy_loss(const void *context) {
    (void)context;
    real copy[10], capped[10], loss[2], squares[2];
    memcpy(copy, logits, sizeof copy);
    if (logit_cap > 0) ops->softcap(2, 4, copy, 5, logit_cap);
    memcpy(capped, copy, sizeof copy);
    ops->cross_entropy(2, 4, copy, 5, target, logit_cap, z_weight, 0, loss, squares);
    assert_memory_equal(copy, capped, sizeof copy); /* left alone without a scale */
    return 0.25 * ((double)loss[0] + loss[1] + z_weight * ((double)squares[0] + squares[1]));
}

static void check_cross_entropy(void) {
    real before[10], gradient[10], loss[2], squares[2];
    FILL(logits, -2, 2);
    memcpy(before, logits, sizeof before);
    if (logit_cap > 0) ops->softcap(2, 4, before, 5, logit_cap);
    for (int i = 0; i < 10; i++)
        check_near("cap", before[i],
                   logit_cap > 0 && i % 5 < 4 ? logit_cap * tanh(logits[i] / logit_cap) : logits[i]);
    memcpy(gradient, before, sizeof gradient);
    ops->cross_entropy(2, 4, gradient, 5, target, logit_cap, z_weight, 0.25, loss, squares);
    for (int t = 0; t < 2; t++) {
        double sum = 0;
        for (int v = 0; v < 4; v++) sum += exp((double)before[t * 5 + v]);
        check_near("loss", loss[t], log(sum) - before[t * 5 + target[t]]);
        check_near("square", squares[t], log(sum) * log(sum));
        check_near("padding", gradient[t * 5 + 4], before[t * 5 + 4]);
        gradient[t * 5 + 4] = 0;
    }
    check_gradients(cross_entropy_loss, NULL,
                    (struct input[]){{"logits", 2, 5, logits, 5, gradient, 5}, {0}});

    /* The same from parts of three and one columns, which know of each other by a maximum and two sums. */
    const long first[] = {0, 3, 4};
    real part[10], largest[2] = {-9, -9}, one[2], sums[4] = {0}, two[4], again[2], more[2];
    memcpy(part, before, sizeof part);
    for (int p = 0; p < 2; p++) {
        ops->row_largest(2, first[p + 1] - first[p], part + first[p], 5, one);
        for (int t = 0; t < 2; t++) largest[t] = one[t] > largest[t] ? one[t] : largest[t];
    }
    for (int p = 0; p < 2; p++) {
        ops->part_exp(2, first[p + 1] - first[p], part + first[p], 5, target, first[p], largest, logit_cap,
                      two);
        for (int i = 0; i < 4; i++) sums[i] += two[i];
    }
    for (int p = 0; p < 2; p++) {
        ops->part_cross_entropy(2, first[p + 1] - first[p], part + first[p], 5, target, first[p], largest,
                                sums, logit_cap, z_weight, 0.25, again, more);
        for (int t = 0; t < 2; t++) check_near("loss from parts", again[t], loss[t]);
        for (int t = 0; t < 2; t++) check_near("square from parts", more[t], squares[t]);
    }
    for (int i = 0; i < 10; i++)
        if (i % 5 < 4) check_near("gradient from parts", part[i], gradient[i]);
}

/* Of two rows [2, 4 of 5] the second does not count. */
static void check_left_out(const real *gradient, const real loss[2], const real squares[2]) {
    assert_true(loss[0] > 0 && squares[0] > 0 && gradient[0] != 0);
    assert_true(loss[1] == 0 && squares[1] == 0 && gradient[9] == 9);
    for (int v = 5; v < 9; v++) assert_true(gradient[v] == 0);
}

static void cross_entropy(void **state) {
    (void)state;
    const double caps[] = {0, 1.5, 0, 1.5}, weights[] = {0, 0, 0.3, 0.3};
    for (int i = 0; i < 4; i++) {
        logit_cap = caps[i], z_weight = weights[i];
        check_cross_entropy();
    }

    /* A token that does not count changes nothing, whatever its logits, with a share of the vocabulary
     * either. */
    const int32_t uncounted[] = {3, -1};
    real row[] = {1, 2, 3, 4, 9, NAN, INFINITY, 0, 1, 9}, part[10], loss[2], squares[2], largest[2], sums[4];
    memcpy(part, row, sizeof row);
    ops->cross_entropy(2, 4, row, 5, uncounted, 1.5, 0.3, 2, loss, squares);
    check_left_out(row, loss, squares);
    ops->row_largest(2, 4, part, 5, largest);
    ops->part_exp(2, 4, part, 5, uncounted, 0, largest, 0, sums);
    ops->part_cross_entropy(2, 4, part, 5, uncounted, 0, largest, sums, 0, 0.3, 2, loss, squares);
    check_left_out(part, loss, squares);

    real far[] = {-2000, 3000}, far_loss; /* exp of neither is a number */
    ops->cross_entropy(1, 2, far, 2, target + 1, 0, 0, 1, &far_loss, NULL);
    check_near("far", far_loss, 5000);
    check_near("far", far[0], -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm),    cmocka_unit_test(vectors),   cmocka_unit_test(adamw),
        cmocka_unit_test(opposed), cmocka_unit_test(embed),     cmocka_unit_test(rope),
        cmocka_unit_test(swiglu),  cmocka_unit_test(attention), cmocka_unit_test(cross_entropy),
    };
    ops = ops_find("reference");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
