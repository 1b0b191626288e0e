/* Attention on a device of its own, in every precision, against the reference.
 *
 * In a lower precision operands are rounded as they enter a product: q, k, v and dout, which the reference
 * gets rounded beforehand, and the weights P and dS, which it does not round. That is all that sets the two
 * apart beyond fp32's own roundings, and it is bounded (what a mask keeps of a weight is the weight over 1 −
 * p): with u half the distance of the numbers next to 1, and e half the least subnormal one, a weight w comes
 * out within u·|w| + e, and so a sum Σ w·x within Σ (u·|w| + e)·|x|. (Forward, what is rounded is a weight
 * relative to the largest so far. It is divided by a sum of such weights later, which is at least 1, so e
 * becomes no larger by it.) On top of it comes what harness.c allows for fp32.
 *
 * That operands are rounded to nearest, ties to even, is seen from the bits: operands that were rounded
 * beforehand give the same results as those that were not. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "tests/kernels/ops/harness.h"
#include "kernels/base/status.h"

static const struct format {
    const char *name;
    enum precision precision;
    int bits;        /* of the mantissa, the leading one included; 0: nothing is rounded */
    double smallest; /* normal number */
} formats[] = {
    {"fp32", PRECISION_FP32, 0, 0},
    {"bf16", PRECISION_BF16, 8, 0x1p-126},
    {"fp16", PRECISION_FP16, 11, 0x1p-14},
};
static const struct format *format;

static const struct shape {
    long B, S, H, K, hd;
} shapes[] = {
    {1, 1, 1, 1, 2},     {3, 7, 2, 1, 8},    {1, 33, 4, 1, 16},  {1, 64, 2, 2, 40},
    {2, 65, 4, 2, 64},   {1, 130, 4, 1, 64}, {1, 65, 2, 1, 96},  {1, 64, 1, 1, 128},
    {1, 130, 2, 1, 128}, {1, 33, 3, 3, 5},   {1, 35, 2, 1, 136}, {1, 66, 2, 1, 256},
};

/* What is dropped; NULL: nothing. */
static const struct mask *mask;

/* Where documents start, [B·S]; NULL: each sequence is one. */
static const int32_t *starts;

/* What a mask makes of the probability of key i for head h of query t, counted over all sequences. */
static double factor(long h, long t, long i) {
    if (!mask) return 1;
    uint64_t row = mask_row(mask->site, mask->head + (uint64_t)h, mask->row + (uint64_t)t);
    bool kept = mask_bits(row, (uint32_t)mask->column + (uint32_t)i) >= mask_limit(mask->p);
    return kept ? 1 / (1 - mask->p) : 0;
}

static double nearest(double x) {
    if (format->bits == 0 || x == 0) return x;
    int exponent = ilogb(fmax(fabs(x), format->smallest));
    return scalbn(rint(scalbn(x, format->bits - 1 - exponent)), exponent - format->bits + 1);
}

/* What a weight's rounding may add to a sum in which it has the factor x. */
static double slack(double weight, double x) {
    if (format->bits == 0) return 0;
    const double u = 1.0 / (1 << format->bits);
    return (u * fabs(weight) + u * format->smallest) * fabs(x);
}

/* ----------------------------------------------------------------------------------------------- buffers */

/* One side's operands are left for the device to round. */
static void round_operand(struct buffer *b) {
    EACH_SIDE(side)
    for (long i = 0; side != THREE_THREADS && i < b->count; i++) b->x[side][i] = (real)nearest(b->x[side][i]);
}

static struct buffer *make_operand(const char *name, long count) {
    struct buffer *b = make(name, count, -2, 2);
    round_operand(b);
    return b;
}

static struct buffer *make_result(const char *name, long count) {
    struct buffer *b = make(name, count, -1, 1);
    set(b, 0, 1, NAN);
    return b;
}

static void check_bits(const struct buffer *b, enum side side, const char *what) {
    if (memcmp(b->x[side], b->x[ONE_THREAD], (size_t)b->count * sizeof(real)) != 0)
        fail_msg("%s of %s in %s, %s: %s has other bits %s", operation, backend->name, format->name, text,
                 b->name, what);
}

/* `allowed` [count]: beyond fp32's roundings of a sum of `terms`; NULL: nothing. */
static void check(struct buffer *b, const double *allowed, long terms) {
    double squares = 0;
    const real *expected = b->x[REFERENCE];
    for (long i = 0; i < b->count; i++) squares += (double)expected[i] * expected[i];
    double usual = sqrt(squares / (double)b->count);
    synchronize();
    EACH_SIDE(side) for (long i = 0; side != REFERENCE && i < b->count; i++) {
        double max = FLT_EPSILON * (16 + 4 * sqrt((double)terms)) * (fabs(expected[i]) + usual + 0.0625);
        if (allowed) max += allowed[i];
        if (!(fabs((double)b->x[side][i] - expected[i]) <= max))
            fail_msg("%s of %s in %s, %s: %s[%ld] is %.9g, the reference has %.9g, and %.3g is allowed",
                     operation, backend->name, format->name, text, b->name, i, b->x[side][i], expected[i],
                     max);
    }
    check_bits(b, THREE_THREADS, "where operands were not rounded beforehand");
    check_bits(b, THREE_AGAIN, "where buffers are aligned");
}

/* What is left for the harness to see: inputs that were written, or memory behind buffers. */
static void check_the_rest(struct buffer *const *operands, struct buffer *const *results) {
    for (; *operands; operands++) like_the_reference(*operands, THREE_THREADS);
    for (; *results; results++) EACH_SIDE(side) if (side != REFERENCE) like_the_reference(*results, side);
    compare(1, ANY_THREADS);
}

static double *zeros(long count) {
    double *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

/* ------------------------------------------------------------------------------------ weights, in double */

static double dot(long n, const real *x, const real *y) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* The weights of `length` keys, ld apart; those before `from` have none. */
static void weigh(long from, long length, long hd, const real *q, const real *keys, long ld, double *p) {
    double scale = 1 / sqrt((double)hd), largest = -INFINITY, sum = 0;
    for (long i = 0; i < from; i++) p[i] = 0;
    for (long i = from; i < length; i++) largest = fmax(largest, p[i] = scale * dot(hd, q, keys + i * ld));
    for (long i = from; i < length; i++) sum += p[i] = exp(p[i] - largest);
    for (long i = from; i < length; i++) p[i] /= sum;
}

/* Adds to `allowed` [hd] what `length` weights may do to a sum over vectors x, ld apart. */
static void allow(long length, long hd, const double *w, const real *x, long ld, double *allowed) {
    for (long i = 0; i < length; i++)
        for (long c = 0; c < hd; c++) allowed[c] += slack(w[i], x[i * ld + c]);
}

/* --------------------------------------------------------------------------------------------- operations */

/* Scores that rise or fall by 4 from key to key; all numbers are exact in every format. */
static void make_steep(const struct shape *s, int steep, struct buffer *qkv) {
    long ld = (s->H + 2 * s->K) * s->hd;
    EACH_SIDE(side)
    for (long t = 0; t < s->B * s->S; t++)
        for (long c = 0; c < (s->H + s->K) * s->hd; c++)
            qkv->x[side][t * ld + c] = (real)(c % s->hd ? 0 : c < s->H * s->hd ? 16 : steep * (t % s->S));
}

static void forward(const struct shape *s, int steep) {
    long S = s->S, hd = s->hd, T = s->B * S, ld = (s->H + 2 * s->K) * hd, ldo = s->H * hd;
    struct buffer *qkv = make_operand("qkv", T * ld), *o = make_result("o", T * ldo);
    struct buffer *lse = make_result("lse", s->B * s->H * S);
    if (steep) make_steep(s, steep, qkv);
    operation = "attention";
    EACH_SIDE(i) start(i)->attention(s->B, S, s->H, s->K, hd, mask, starts, qkv->x[i], o->x[i], lse->x[i]);
    double *allowed = zeros(T * ldo), *p = zeros(S);
    for (long t = 0; t < T; t++)
        for (long h = 0; h < s->H; h++) {
            const real *row = qkv->x[REFERENCE] + t * ld, *first = row - t % S * ld;
            const real *keys = first + (s->H + h / (s->H / s->K)) * hd, *values = keys + s->K * hd;
            weigh(starts ? starts[t] : 0, t % S + 1, hd, row + h * hd, keys, ld, p);
            for (long i = 0; i <= t % S; i++) p[i] *= factor(h, t, i);
            allow(t % S + 1, hd, p, values, ld, allowed + t * ldo + h * hd);
        }
    check(o, allowed, hd + S);
    check(lse, NULL, hd + S);
    free(p);
    free(allowed);
    check_the_rest((struct buffer *[]){qkv, NULL}, (struct buffer *[]){o, lse, NULL});
}

static void backward(const struct shape *s) {
    long S = s->S, hd = s->hd, T = s->B * S, ld = (s->H + 2 * s->K) * hd, ldo = s->H * hd;
    struct buffer *qkv = make_operand("qkv", T * ld), *dout = make_operand("dout", T * ldo);
    struct buffer *o = make_result("o", T * ldo), *lse = make_result("lse", s->B * s->H * S);
    struct buffer *dqkv = make_result("dqkv", T * ld), *work = make_result("work", s->B * s->H * S);
    operation = "attention_back";
    ops_find("reference")
        ->attention(s->B, S, s->H, s->K, hd, mask, starts, qkv->x[REFERENCE], o->x[REFERENCE],
                    lse->x[REFERENCE]);
    EACH_SIDE(i) {
        if (i != REFERENCE) like_the_reference(o, i), like_the_reference(lse, i);
        start(i)->attention_back(s->B, S, s->H, s->K, hd, mask, starts, qkv->x[i], o->x[i], lse->x[i],
                                 dout->x[i], dqkv->x[i], work->x[i]);
    }
    double *allowed = zeros(T * ld), *p = zeros(S);
    for (long t = 0; t < T; t++)
        for (long h = 0; h < s->H; h++) {
            long at_q = t * ld + h * hd, at_k = (t - t % S) * ld + (s->H + h / (s->H / s->K)) * hd;
            long at_v = at_k + s->K * hd;
            const real *x = qkv->x[REFERENCE], *d = dout->x[REFERENCE] + t * ldo + h * hd;
            double inner = dot(hd, d, o->x[REFERENCE] + t * ldo + h * hd);
            weigh(starts ? starts[t] : 0, t % S + 1, hd, x + at_q, x + at_k, ld, p);
            for (long i = 0; i <= t % S; i++) {
                double kept = factor(h, t, i), seen = p[i] * kept;
                double ds = p[i] * (dot(hd, d, x + at_v + i * ld) * kept - inner) / sqrt((double)hd);
                allow(1, hd, &seen, d, 0, allowed + at_v + i * ld);
                allow(1, hd, &ds, x + at_q, 0, allowed + at_k + i * ld);
                allow(1, hd, &ds, x + at_k + i * ld, 0, allowed + at_q);
            }
        }
    check(dqkv, allowed, 2 * hd + S * s->H / s->K);
    free(p);
    free(allowed);
    set(work, 0, 1, 0); /* scratch */
    check_the_rest((struct buffer *[]){qkv, dout, NULL}, (struct buffer *[]){dqkv, work, NULL});
}

static void decode(const struct shape *s, long length) {
    long hd = s->hd, ld = s->K * hd;
    struct buffer *q = make_operand("q", s->H * hd), *keys = make_operand("keys", length * ld);
    struct buffer *values = make_operand("values", length * ld), *o = make_result("o", s->H * hd);
    operation = "attention_decode";
    EACH_SIDE(i)
    start(i)->attention_decode(length, s->H, s->K, hd, q->x[i], keys->x[i], values->x[i], o->x[i]);
    double *allowed = zeros(s->H * hd), *p = zeros(length);
    for (long h = 0; h < s->H; h++) {
        long at = h / (s->H / s->K) * hd;
        weigh(0, length, hd, q->x[REFERENCE] + h * hd, keys->x[REFERENCE] + at, ld, p);
        allow(length, hd, p, values->x[REFERENCE] + at, ld, allowed + h * hd);
    }
    check(o, allowed, hd + length);
    free(p);
    free(allowed);
    check_the_rest((struct buffer *[]){q, keys, values, NULL}, (struct buffer *[]){o, NULL});
}

/* ------------------------------------------------------------------------------------------------- tests */

/* `backend` becomes the device's table in a format. */
static bool next_format(const struct ops *device, size_t at) {
    if (at == COUNT(formats)) return false;
    format = &formats[at];
    backend = ops_in(device, format->precision);
    if (!backend) fail_msg("%s: %s", format->name, gdn_failure());
    return true;
}

#define EACH_FORMAT                                                                                          \
    for (const struct ops *const *each = test_backends(); *each; each++)                                     \
        for (size_t at = 0; next_format(*each, at); at++)

static void describe(const struct shape *s, const char *more) {
    snprintf(text, sizeof text, "B %ld S %ld H %ld K %ld hd %ld%s", s->B, s->S, s->H, s->K, s->hd, more);
}

static void passes(void **state) {
    (void)state;
    EACH_FORMAT for (const struct shape *s = shapes; s < shapes + COUNT(shapes); s++) {
        describe(s, "");
        forward(s, 0);
        backward(s);
    }
}

/* Several tiles of each width; rows beyond 2³², and another first column. */
static void dropped(void **state) {
    static const struct mask some = {.site = 3, .head = 1, .row = 1ull << 33, .column = 7, .p = 0.4};
    static const struct shape wide[] = {{1, 130, 4, 2, 64}, {2, 65, 2, 1, 128}, {1, 35, 1, 1, 256}};
    (void)state;
    mask = &some;
    EACH_FORMAT for (const struct shape *s = wide; s < wide + COUNT(wide); s++) {
        describe(s, ", dropped");
        forward(s, 0);
        backward(s);
    }
    mask = NULL;
}

/* Documents of all lengths up to `longest`, the first of a sequence cut off. */
static const int32_t *make_starts(const struct shape *s, long longest) {
    int32_t *start = make_tokens(s->B * s->S, (int32_t)longest);
    for (long t = 0, left = 0, first = 0; t < s->B * s->S; t++, left--) {
        if (t % s->S == 0 || left == 0) first = t % s->S, left = 1 + start[t];
        start[t] = (int32_t)first;
    }
    return start;
}

/* Several tiles of each width that documents end in, and some that they empty. */
static void documents(void **state) {
    static const struct shape wide[] = {{2, 300, 4, 2, 64}, {1, 260, 2, 1, 128}, {1, 150, 1, 1, 256}};
    (void)state;
    EACH_FORMAT for (const struct shape *s = wide; s < wide + COUNT(wide);
                     s++) for (long longest = 8; longest < s->S; longest *= 6) {
        describe(s, ", documents");
        starts = make_starts(s, longest);
        forward(s, 0);
        starts = make_starts(s, longest);
        backward(s);
    }
    starts = NULL;
}

/* e⁵¹⁶ has to stay out of it. */
static void steep(void **state) {
    static const struct shape s = {1, 130, 2, 1, 16};
    (void)state;
    EACH_FORMAT {
        describe(&s, ", rising");
        forward(&s, 1);
        describe(&s, ", falling");
        forward(&s, -1);
    }
}

/* A NaN in a query reaches its own row alone, one in a key all rows from its own on. */
static void nan_is_seen(void **state) {
    enum { S = 70, hd = 16, ROW = 37 };
    (void)state;
    EACH_FORMAT for (int key = 0; key < 2; key++) {
        struct buffer *qkv = make_operand("qkv", S * 3 * hd), *o = make_result("o", S * hd),
                      *lse = make_result("lse", S);
        qkv->x[ONE_THREAD][ROW * 3 * hd + key * hd + 3] = (real)NAN;
        backend->attention(1, S, 1, 1, hd, NULL, NULL, qkv->x[ONE_THREAD], o->x[ONE_THREAD],
                           lse->x[ONE_THREAD]);
        synchronize();
        for (long t = 0; t < S; t++)
            for (long c = 0; c < hd; c++) {
                bool expected = key ? t >= ROW : t == ROW;
                if (!isnan(o->x[ONE_THREAD][t * hd + c]) == expected ||
                    !isnan(lse->x[ONE_THREAD][t]) == expected)
                    fail_msg("in %s a NaN in a %s of row %d: row %ld of o has %g, lse %g", format->name,
                             key ? "key" : "query", ROW, t, o->x[ONE_THREAD][t * hd + c],
                             lse->x[ONE_THREAD][t]);
            }
        release();
    }
}

static void decoding(void **state) {
    static const long lengths[] = {1, 5, 33, 128, 700, 4200}; /* 4200: parts of more than one step */
    (void)state;
    EACH_FORMAT for (const struct shape *s = shapes; s < shapes + COUNT(shapes);
                     s++) for (size_t l = 0; l < COUNT(lengths); l++) {
        if (lengths[l] * s->H * s->hd > 300000) continue;
        snprintf(text, sizeof text, "length %ld H %ld K %ld hd %ld", lengths[l], s->H, s->K, s->hd);
        decode(s, lengths[l]);
    }
}

/* Products alone are of 8 bits. A GPU may have none of it. */
static void fp8_is_bf16(void **state) {
    (void)state;
    for (const struct ops *const *each = test_backends(); *each; each++) {
        const struct ops *fp8 = ops_in(*each, PRECISION_FP8), *bf16 = ops_in(*each, PRECISION_BF16);
        assert_true(!fp8 ||
                    (fp8->attention == bf16->attention && fp8->attention_back == bf16->attention_back &&
                     fp8->attention_decode == bf16->attention_decode));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {OPERATION_TEST(passes),      OPERATION_TEST(dropped),
                                       OPERATION_TEST(documents),   OPERATION_TEST(steep),
                                       OPERATION_TEST(nan_is_seen), OPERATION_TEST(decoding),
                                       OPERATION_TEST(fp8_is_bf16)};
    return cmocka_run_group_tests(tests, describe_backends, NULL);
}
