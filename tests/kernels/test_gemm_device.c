/* Products on a device, in every precision, against products in double. Two bounds hold for each element: the
 * one that the numbers' precision promises, from the roundings of the operands alone, and a tight one around
 * the product of operands that are rounded here the way they should be, which leaves only the sum's own
 * roundings. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "kernels/base/random.h"
#include "kernels/base/status.h"

#define __device__ __attribute__((unused))
#include "kernels/cuda/number.h"

static const struct device *device;

/* ------------------------------------------------------------------------------------------- matrices */

/* Rows of `columns` numbers, `ld` apart, on the host and, `shift` elements behind an aligned address, on the
 * device. */
struct matrix {
    long rows, columns, ld, shift;
    float *host, *reserved;
};

static size_t bytes(const struct matrix *x) {
    return (size_t)(x->shift + x->rows * x->ld) * sizeof(float);
}
static float *on_device(const struct matrix *x) {
    return x->reserved + x->shift;
}
static float *row(const struct matrix *x, long i) {
    return x->host + x->shift + i * x->ld;
}
static void upload(const struct matrix *x) {
    device->upload(x->reserved, x->host, bytes(x));
}
static void download(const struct matrix *x) {
    device->download(x->host, x->reserved, bytes(x));
}

/* All elements, gaps included, are `value`. */
static struct matrix make_matrix(long rows, long columns, long gap, long shift, float value) {
    struct matrix x = {rows, columns, columns + gap, shift, NULL, NULL};
    assert_non_null(x.host = malloc(bytes(&x)));
    assert_non_null(x.reserved = device->reserve(bytes(&x)));
    for (long i = 0; i < shift + rows * x.ld; i++) x.host[i] = value;
    return x;
}

/* Numbers in [−size, size), a different matrix at each call; NaN in the gaps, which nobody should read. */
static struct matrix random_matrix(long rows, long columns, long gap, long shift, double size) {
    static uint64_t seed;
    struct matrix x = make_matrix(rows, columns, gap, shift, NAN);
    seed++;
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) {
            double unit = (double)(random_bits(7, seed, (uint64_t)(i * columns + j)) >> 40) / (1 << 24);
            row(&x, i)[j] = (float)(size * (2 * unit - 1));
        }
    upload(&x);
    return x;
}

static void discard(struct matrix *x) {
    device->release(x->reserved);
    free(x->host);
}

/* ------------------------------------------------------------------------------- what a precision does */

static float as_fp32(float x) {
    return x;
}
static float as_bf16(float x) {
    return from_bf16(to_bf16(x));
}
static float as_fp16(float x) {
    return from_fp16(to_fp16(x));
}
static float as_e4m3(float x) {
    return from_e4m3(to_e4m3(x));
}
static float as_e5m2(float x) {
    return from_e5m2(to_e5m2(x));
}

struct number {
    float (*as)(float);
    double epsilon, least; /* relative error of a rounding; absolute error near 0 */
    double largest;        /* of numbers with a scale */
    /* A card adds products in float, of 8 bits with fewer digits: error of a sum relative to its terms'
     * sizes, and for the square root of their number. */
    double sum, root;
};

static const struct number fp32 = {as_fp32, 0, 0, 0, 16 * FLT_EPSILON, 4 * FLT_EPSILON};
static const struct number bf16 = {as_bf16, 0x1p-8, 0, 0, 16 * FLT_EPSILON, 4 * FLT_EPSILON};
static const struct number fp16 = {as_fp16, 0x1p-11, 0x1p-25, 0, 16 * FLT_EPSILON, 4 * FLT_EPSILON};
static const struct number e4m3 = {as_e4m3, 0x1p-4, 0x1p-10, 448, 0x1p-12, 0};
static const struct number e5m2 = {as_e5m2, 0x1p-3, 0x1p-17, 57344, 0x1p-12, 0};

/* An operand as the product should see it. */
struct seen {
    const struct matrix *x;
    const struct number *number;
    double factor; /* it is multiplied by this, a power of two, before it is rounded */
};

static double rounded(const struct seen *operand, double x) {
    double scaled = x * operand->factor;
    if (isfinite(x)) scaled = fmax(-FLT_MAX, fmin(scaled, FLT_MAX));
    return (double)operand->number->as((float)scaled) / operand->factor;
}

/* The error of |x| that rounding may make. */
static double error_of(const struct seen *operand, double x) {
    return operand->number->epsilon * fabs(x) + operand->number->least / operand->factor;
}

/* C against alpha·op(A)·op(B) + beta·before. `promised`: whether to hold it to the numbers' epsilon, too. */
static void check(char ta, char tb, long k, double alpha, double beta, const struct seen *a,
                  const struct seen *b, const struct matrix *c, const float *before, bool promised) {
    for (long i = 0; i < c->rows; i++)
        for (long j = 0; j < c->columns; j++) {
            double exact = 0, expected = 0, size = 0, error = 0;
            for (long p = 0; p < k; p++) {
                double x = ta == 'N' ? row(a->x, i)[p] : row(a->x, p)[i];
                double y = tb == 'N' ? row(b->x, p)[j] : row(b->x, j)[p], x_to = rounded(a, x),
                       y_to = rounded(b, y);
                exact += x * y;
                expected += x_to * y_to;
                size += fabs(x_to * y_to);
                error += error_of(a, x) * (fabs(y) + error_of(b, y)) + fabs(x) * error_of(b, y);
            }
            double old = beta == 0 ? 0 : beta * before[c->shift + i * c->ld + j], got = row(c, i)[j];
            double sum = a->number->sum + a->number->root * sqrt((double)k);
            double tight = sum * (fabs(alpha) * size + fabs(old)) + FLT_MIN;
            if (!(fabs(got - (alpha * expected + old)) <= tight) && !(isnan(expected) && isnan(got)))
                fail_msg("%s: C[%ld, %ld] is %.9g, not %.9g ± %.2g", words, i, j, got, alpha * expected + old,
                         tight);
            if (promised && !(fabs(got - (alpha * exact + old)) <= fabs(alpha) * error + tight))
                fail_msg("%s: C[%ld, %ld] is %.9g, not %.9g ± %.2g as promised", words, i, j, got,
                         alpha * exact + old, fabs(alpha) * error + tight);
        }
}

static void check_gaps(const struct matrix *c, const float *before) {
    device->wait();
    for (long i = 0; i < c->shift + c->rows * c->ld; i++)
        if ((i < c->shift || (i - c->shift) % c->ld >= c->columns) && c->host[i] != before[i])
            fail_msg("%s: element %ld beside C has changed", words, i);
}

/* ------------------------------------------------------------------------- what scales should be: ops.h */

enum role { X, W, DY, ROLES, MOST_SITES = 4096, HISTORY = 16 };

static struct {
    double largest[HISTORY];
    long calls;
} past[MOST_SITES][ROLES];
static int sites; /* used so far */

static int new_site(void) {
    assert_true(sites < device->sites && sites < MOST_SITES);
    return sites++;
}

static void see(struct seen *operand, int site, enum role role) {
    double own = 0, most = 0;
    for (long i = 0; i < operand->x->rows; i++)
        for (long j = 0; j < operand->x->columns; j++) {
            double size = fabs((double)row(operand->x, i)[j]);
            if (isfinite(size)) own = fmax(own, size);
        }
    long calls = past[site][role].calls++;
    for (long i = 0; i < calls && i < HISTORY; i++) most = fmax(most, past[site][role].largest[i]);
    if (calls == 0) most = own;
    past[site][role].largest[calls % HISTORY] = own;
    operand->number = role == DY ? &e5m2 : &e4m3;
    operand->factor = most == 0 ? 1 : exp2(fmin(126, floor(log2(operand->number->largest / most))));
}

/* ------------------------------------------------------------------------------------------------ calls */

static const struct number *const of_gemm[PRECISIONS] = {&fp32, &bf16, &fp16, &bf16};
static const char *const names[PRECISIONS] = {"fp32", "bf16", "fp16", "fp8"};

enum { GEMM = -1 }; /* in place of a site */

struct made {
    struct matrix a, b, c;
    char ta, tb;
    long k;
};

static struct made make_product(char ta, char tb, long m, long n, long k, long gap, long shift, double size_a,
                                double size_b) {
    struct made made = {.ta = ta, .tb = tb, .k = k};
    made.a = ta == 'N' ? random_matrix(m, k, gap, shift, size_a) : random_matrix(k, m, gap, shift, size_a);
    made.b =
        tb == 'N' ? random_matrix(k, n, 2 * gap, shift, size_b) : random_matrix(n, k, 2 * gap, shift, size_b);
    made.c = random_matrix(m, n, 3 * gap, shift, 1);
    for (long i = 0; i < m; i++) /* what should not change is compared as numbers */
        for (long j = n; j < made.c.ld; j++) row(&made.c, i)[j] = 12345;
    for (long i = 0; i < shift; i++) made.c.host[i] = 12345;
    return made;
}

static void discard_product(struct made *made) {
    discard(&made->a);
    discard(&made->b);
    discard(&made->c);
}

static void call(const struct ops *ops, int site, const struct made *x, float alpha, float beta) {
    const struct matrix *a = &x->a, *b = &x->b, *c = &x->c;
    if (site == GEMM)
        ops->gemm(x->ta, x->tb, c->rows, c->columns, x->k, alpha, on_device(a), a->ld, on_device(b), b->ld,
                  beta, on_device(c), c->ld);
    else
        ops->product(site, x->ta, x->tb, c->rows, c->columns, x->k, alpha, on_device(a), a->ld, on_device(b),
                     b->ld, beta, on_device(c), c->ld);
    download(c);
    if (device->wait()) fail_msg("%s: %s", words, gdn_failure());
}

/* Calls and checks; `before`: what C was. */
static void call_checked(const struct ops *ops, int site, struct made *x, float alpha, float beta,
                         bool promised) {
    struct seen a = {&x->a, of_gemm[ops->precision], 1}, b = {&x->b, of_gemm[ops->precision], 1};
    float *before = malloc(bytes(&x->c));
    assert_non_null(before);
    memcpy(before, x->c.host, bytes(&x->c));
    upload(&x->c);
    if (site != GEMM && ops->precision == PRECISION_FP8) {
        see(&a, site, x->ta == 'N' && x->tb == 'T' ? X : DY);
        see(&b, site, x->ta == 'N' ? W : X);
    }
    call(ops, site, x, alpha, beta);
    check(x->ta, x->tb, x->k, alpha, beta, &a, &b, &x->c, before, promised);
    check_gaps(&x->c, before);
    free(before);
}

/* NULL, on a card that lacks it. */
static const struct ops *ops_of(enum precision precision) {
    const struct ops *ops = ops_in(backend, precision);
    if (ops) return ops;
    assert_string_equal(backend->name, "cuda");
    printf("not tested: %s\n", gdn_failure());
    gdn_failure_clear();
    return NULL;
}

#define EACH_PRECISION(ops)                                                                                  \
    for (enum precision precision = PRECISION_FP32; precision < PRECISIONS; precision++)                     \
        for (const struct ops *ops = ops_of(precision); ops; ops = NULL)

static void one_shape(const struct ops *ops, bool product, const long shape[3], int mask, bool odd,
                      float alpha, float beta) {
    char ta = mask & 1 ? 'T' : 'N', tb = mask & 2 ? 'T' : 'N';
    struct made x = make_product(ta, tb, shape[0], shape[1], shape[2], odd ? 1 : 0, odd ? 1 : 0, 1, 3);
    if (beta == 0)
        for (long i = 0; i < shape[0]; i++)
            for (long j = 0; j < shape[1]; j++) row(&x.c, i)[j] = NAN;
    snprintf(words, sizeof words, "%s %s %c%c m %ld n %ld k %ld alpha %g beta %g%s", names[ops->precision],
             product ? "product" : "gemm", ta, tb, shape[0], shape[1], shape[2], alpha, beta,
             odd ? " odd" : "");
    float *first = malloc(bytes(&x.c)), *before = malloc(bytes(&x.c));
    assert_true(first && before);
    memcpy(before, x.c.host, bytes(&x.c));
    call_checked(ops, product ? new_site() : GEMM, &x, alpha, beta, true);
    memcpy(first, x.c.host, bytes(&x.c));
    device->upload(x.c.reserved, before, bytes(&x.c));
    call(ops, product ? new_site() : GEMM, &x, alpha, beta);
    if (memcmp(first, x.c.host, bytes(&x.c)) != 0) fail_msg("%s: different bits the second time", words);
    free(first);
    free(before);
    discard_product(&x);
}

static void shapes(void **state) {
    static const long list[][3] = {{1, 1, 1},     {1, 7, 5},    {7, 1, 5},     {5, 7, 1},    {1, 40, 33},
                                   {40, 1, 33},   {16, 16, 16}, {17, 33, 19},  {33, 16, 64}, {64, 48, 80},
                                   {65, 34, 257}, {3, 2, 5000}, {96, 128, 64}, {200, 5, 24}, {32, 20, 16}};
    static const float factors[][2] = {{1, 0}, {1, 1}, {-0.75f, 0.5f}};
    (void)state;
    EACH_PRECISION(ops)
    for (size_t s = 0; s < COUNT(list); s++)
        for (int mask = 0; mask < 4; mask++)
            for (int how = 0; how < 6; how++) {
                one_shape(ops, false, list[s], mask, how & 1, factors[how / 2][0], factors[how / 2][1]);
                if (mask != 3)
                    one_shape(ops, true, list[s], mask, how & 1, factors[how / 2][0], factors[how / 2][1]);
            }
}

/* A NaN or an infinity in A shows in its row of C, and nowhere else. */
static void not_finite(void **state) {
    (void)state;
    EACH_PRECISION(ops) for (int how = 0; how < 4; how++) {
        struct made x = make_product(how & 1 ? 'T' : 'N', how & 1 ? 'N' : 'T', 5, 6, 20, 0, 0, 1, 1);
        *(how & 1 ? row(&x.a, 7) + 3 : row(&x.a, 3) + 7) = how & 2 ? INFINITY : NAN;
        upload(&x.a);
        snprintf(words, sizeof words, "%s, way %d", names[precision], how);
        int site = new_site();
        float first = 0;
        for (int again = 0; again < 3; again++) {
            call(ops, site, &x, 1, 0);
            if (again == 0) first = row(&x.c, 2)[1];
            assert_true(first != 0 && row(&x.c, 2)[1] == first); /* later scales know nothing of it */
            for (long i = 0; i < 5; i++)
                for (long j = 0; j < 6; j++) assert_int_equal(isfinite(row(&x.c, i)[j]) != 0, i != 3);
        }
        discard_product(&x);
    }
}

static void empty(void **state) {
    (void)state;
    EACH_PRECISION(ops) for (int product = 0; product < 2; product++) {
        struct matrix c = make_matrix(3, 5, 2, 1, NAN);
        float *at = on_device(&c);
        upload(&c);
        for (int how = 0; how < 3; how++) {
            long m = how == 1 ? 0 : 3, n = how == 2 ? 0 : 5, k = how == 0 ? 0 : 4;
            if (product)
                ops->product(1, 'N', 'T', m, n, k, 1, at, 4, at, 4, 0, at, c.ld);
            else
                ops->gemm('N', 'T', m, n, k, 1, at, 4, at, 4, 0, at, c.ld);
            download(&c); /* the first leaves zeros, the others nothing */
            for (long i = 0; i < 3 * c.ld; i++)
                assert_true(i % c.ld < 5 ? c.host[1 + i] == 0 : isnan(c.host[1 + i]));
        }
        for (long i = 0; i < 3; i++) row(&c, i)[4] = 3;
        upload(&c);
        ops->gemm('N', 'T', 3, 5, 0, 1, at, 4, at, 4, 0.5f, at, c.ld);
        download(&c);
        for (long i = 0; i < 3; i++) assert_true(row(&c, i)[4] == 1.5f && row(&c, i)[3] == 0);
        assert_int_equal(device->wait(), 0);
        discard(&c);
    }
}

/* Every number of a format, what lies halfway between two, and its neighbours, times 1. */
static void conversions(void **state) {
    (void)state;
    EACH_PRECISION(ops) for (int gradient = 0; gradient < 2; gradient++) {
        if (precision == PRECISION_FP32 || (gradient && precision != PRECISION_FP8)) continue;
        const struct number *number = precision != PRECISION_FP8 ? of_gemm[precision]
                                      : gradient                 ? &e5m2
                                                                 : &e4m3;
        long codes = precision == PRECISION_FP8 ? 0x80 : 0x8000, many = 0;
        struct matrix x = make_matrix(4 * codes, 1, 0, 0, 0), c = make_matrix(4 * codes, 1, 0, 0, 0);
        struct matrix one = make_matrix(1, 1, 0, 0, 1);
        for (long code = 0; code + 1 < codes; code++) {
            float low = precision == PRECISION_BF16   ? from_bf16((uint16_t)code)
                        : precision == PRECISION_FP16 ? from_fp16((uint16_t)code)
                        : gradient                    ? from_e5m2((uint8_t)code)
                                                      : from_e4m3((uint8_t)code);
            float next = nextafterf(low, INFINITY), sign = code & 1 ? -1 : 1;
            while (isfinite(next) && number->as(next) == low) next = low + 2 * (next - low);
            float high = number->as(next), middle = low + (high - low) / 2;
            if (!isfinite(low) || !isfinite(high) || (number->largest > 0 && low >= number->largest))
                continue;
            float four[] = {low, middle, nextafterf(middle, 0), nextafterf(middle, INFINITY)};
            for (int i = 0; i < 4; i++) x.host[many++] = sign * four[i];
        }
        x.host[many++] = (float)number->largest; /* so that the factor is 1 */
        assert_true(many > codes && many <= 4 * codes);
        upload(&x);
        upload(&one);
        snprintf(words, sizeof words, "%s%s", names[precision], gradient ? ", gradients" : "");
        ops->product(new_site(), 'N', gradient ? 'N' : 'T', many, 1, 1, 1, on_device(&x), 1, on_device(&one),
                     1, 0, on_device(&c), 1);
        download(&c);
        if (device->wait()) fail_msg("%s: %s", words, gdn_failure());
        for (long i = 0; i < many; i++)
            if (c.host[i] != number->as(x.host[i]))
                fail_msg("%s: %a becomes %a, not %a", words, x.host[i], c.host[i], number->as(x.host[i]));
        discard(&x);
        discard(&c);
        discard(&one);
    }
}

/* ------------------------------------------------------------------------------------- delayed scales */

/* One product of x = value and W = 1 in one element each: what became of value. */
static float through(const struct ops *ops, int site, char tb, float value) {
    static struct matrix x, one, c;
    if (!x.host)
        x = make_matrix(1, 1, 0, 0, 0), one = make_matrix(1, 1, 0, 0, 1), c = make_matrix(1, 1, 0, 0, 0);
    x.host[0] = value;
    upload(&x);
    upload(&one);
    ops->product(site, 'N', tb, 1, 1, 1, 1, on_device(&x), 1, on_device(&one), 1, 0, on_device(&c), 1);
    download(&c);
    assert_int_equal(device->wait(), 0);
    return c.host[0];
}

static void delays(void **state) {
    const struct ops *ops = ops_of(PRECISION_FP8);
    (void)state;
    if (!ops) return;
    int site = new_site(), other = new_site();
    assert_true(through(ops, site, 'T', 1) == 1);
    /* Growing numbers saturate once: at 448 over the power of two that took 1 to 256. */
    assert_true(through(ops, site, 'T', 4096) == 1.75f);
    assert_true(through(ops, site, 'T', 4096) == 4096);
    /* The largest counts for 16 calls, in which numbers that have become small are lost. */
    for (int i = 0; i < HISTORY; i++) assert_true(through(ops, site, 'T', 0x1p-7f) == 0);
    assert_true(through(ops, site, 'T', 0x1p-7f) == 0x1p-7f);
    /* Other sites and gradients have scales of their own. */
    assert_true(through(ops, site, 'T', 4096) < 1);
    assert_true(through(ops, other, 'T', 0x1p-7f) == 0x1p-7f);
    assert_true(through(ops, site, 'N', 0x1p-20f) == 0x1p-20f);
    assert_true(through(ops, site, 'N', 1) == 0x1.cp-20f);
    /* The least and the largest floats have scales that are floats; zeros need none. */
    assert_true(through(ops, new_site(), 'T', 0x1p-125f) == 0x1p-125f);
    assert_true(through(ops, new_site(), 'T', 0x1p127f) == 0x1p127f);
    int zeros = new_site();
    assert_true(through(ops, zeros, 'T', 0) == 0 && through(ops, zeros, 'T', 448) == 448);
}

/* Calls of all three kinds, with operands that grow and shrink, on a few sites. */
static void many_calls(void **state) {
    static const double sizes[] = {1, 8, 0x1p-6, 300, 1, 0, 0x1p-30, 1e32, 1e-38};
    const struct ops *ops = ops_of(PRECISION_FP8);
    (void)state;
    if (!ops) return;
    int first = new_site(), second = new_site();
    for (int i = 0; i < 200; i++) {
        uint64_t bits = random_bits(3, 5, (uint64_t)i);
        int kind = (int)(bits % 3);
        double size_a = sizes[bits / 3 % COUNT(sizes)], size_b = sizes[bits / 64 % 7];
        struct made x = make_product(kind == 2 ? 'T' : 'N', kind == 0 ? 'T' : 'N', 9 + i % 40, 16, 7 + i % 90,
                                     i % 2, 0, size_a, size_b);
        row(&x.a, 0)[0] *= 16; /* the largest lies in one piece of many */
        row(&x.b, 0)[0] *= 16;
        upload(&x.a);
        upload(&x.b);
        snprintf(words, sizeof words, "fp8 call %d, kind %d, sizes %g and %g", i, kind, size_a, size_b);
        call_checked(ops, bits >> 20 & 1 ? first : second, &x, 1, 0, false);
        discard_product(&x);
    }
}

/* More shapes than the library's answers are kept for. */
static void many_shapes(void **state) {
    const struct ops *ops = ops_of(PRECISION_FP32);
    struct matrix a = random_matrix(48, 1, 0, 0, 1), b = random_matrix(48, 1, 0, 0, 1),
                  c = make_matrix(48, 48, 0, 0, 0);
    (void)state;
    for (int again = 0; again < 2; again++)
        for (long m = 1; m <= 48; m++)
            for (long n = 1; n <= 48; n++) {
                ops->gemm('N', 'T', m, n, 1, 1, on_device(&a), 1, on_device(&b), 1, 0, on_device(&c), n);
                download(&c);
                for (long i = 0; i < m * n; i++) assert_true(c.host[i] == a.host[i / n] * b.host[i % n]);
            }
    assert_int_equal(device->wait(), 0);
    discard(&a);
    discard(&b);
    discard(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),      cmocka_unit_test(not_finite), cmocka_unit_test(empty),
        cmocka_unit_test(conversions), cmocka_unit_test(delays),     cmocka_unit_test(many_calls),
        cmocka_unit_test(many_shapes),
    };
    setenv("GDN_TEST_BACKEND", "emulated", 0);
    int status = harness_begin();
    if (status) return status;
    backend = harness_backends()[0];
    device = backend->device;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
