/* Products on a device, in every precision, against products in double. Two bounds hold for each element: the
 * one that the numbers' precision promises, from the roundings of the operands alone, and a tight one around
 * the product of operands that are rounded here the way they should be, which leaves only the sum's own
 * roundings. */
#include "tests/kernels/device/device_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"

#define __device__ __attribute__((unused))
#include "kernels/cuda/number.h"

static void one_shape(const struct ops *ops, bool product, const long shape[3], int mask, bool odd,
                      float alpha, float beta) {
    char ta = mask & 1 ? 'T' : 'N', tb = mask & 2 ? 'T' : 'N';
    struct product x = make_product(ta, tb, shape[0], shape[1], shape[2], odd ? 1 : 0, odd ? 1 : 0, 1, 3);
    if (beta == 0)
        for (long i = 0; i < shape[0]; i++)
            for (long j = 0; j < shape[1]; j++) row(&x.c, i)[j] = NAN;
    snprintf(text, sizeof text, "%s %s %c%c m %ld n %ld k %ld alpha %g beta %g%s",
             precision_names[ops->precision], product ? "product" : "gemm", ta, tb, shape[0], shape[1],
             shape[2], alpha, beta, odd ? " odd" : "");
    float *first = malloc(matrix_bytes(&x.c)), *before = malloc(matrix_bytes(&x.c));
    assert_true(first && before);
    memcpy(before, x.c.host, matrix_bytes(&x.c));
    call_checked(ops, product ? new_weight_id() : GEMM, &x, alpha, beta, true);
    memcpy(first, x.c.host, matrix_bytes(&x.c));
    device->upload(x.c.reserved, before, matrix_bytes(&x.c));
    call_product(ops, product ? new_weight_id() : GEMM, &x, alpha, beta);
    if (memcmp(first, x.c.host, matrix_bytes(&x.c)) != 0)
        fail_msg("%s: different bits the second time", text);
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
        struct product x = make_product(how & 1 ? 'T' : 'N', how & 1 ? 'N' : 'T', 5, 6, 20, 0, 0, 1, 1);
        *(how & 1 ? row(&x.a, 7) + 3 : row(&x.a, 3) + 7) = how & 2 ? INFINITY : NAN;
        upload(&x.a);
        snprintf(text, sizeof text, "%s, way %d", precision_names[precision], how);
        int weight_id = new_weight_id();
        float first = 0;
        for (int again = 0; again < 3; again++) {
            call_product(ops, weight_id, &x, 1, 0);
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
                ops->linear(1, 'N', 'T', m, n, k, 1, at, 4, at, 4, 0, at, c.ld);
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
        snprintf(text, sizeof text, "%s%s", precision_names[precision], gradient ? ", gradients" : "");
        ops->linear(new_weight_id(), 'N', gradient ? 'N' : 'T', many, 1, 1, 1, on_device(&x), 1,
                    on_device(&one), 1, 0, on_device(&c), 1);
        download(&c);
        if (device->wait()) fail_msg("%s: %s", text, gdn_failure());
        for (long i = 0; i < many; i++)
            if (c.host[i] != number->as(x.host[i]))
                fail_msg("%s: %a becomes %a, not %a", text, x.host[i], c.host[i], number->as(x.host[i]));
        discard(&x);
        discard(&c);
        discard(&one);
    }
}

/* An operand that has changed between two products, by an upload or an operation, is seen as it is; one that
 * has not serves the second product in another order. */
static void changed_operands(void **state) {
    enum { N = 24 };
    (void)state;
    EACH_PRECISION(ops) for (int how = 0; how < 3; how++) {
        struct matrix a = random_matrix(N, N, 0, 0, 1), b = random_matrix(N, N, 0, 0, 1),
                      c = make_matrix(N, N, 0, 0, 0), d = make_matrix(N, N, 0, 0, 0);
        upload(&a);
        upload(&b);
        ops->gemm('N', 'T', N, N, N, 1, on_device(&a), N, on_device(&b), N, 0, on_device(&d), N);
        if (how == 1) {
            for (long i = 0; i < N; i++) row(&a, i)[i] += 1;
            upload(&a);
        }
        if (how == 2) ops->copy(N * N, on_device(&b), on_device(&a));
        ops->gemm('T', 'N', N, N, N, 1, on_device(&a), N, on_device(&b), N, 0, on_device(&c), N);
        download(&c);
        const struct matrix *is = how == 2 ? &b : &a;
        for (long i = 0; i < N; i++)
            for (long j = 0; j < N; j++) {
                double sum = 0, size = 0;
                for (long k = 0; k < N; k++) {
                    double x = of_gemm[precision]->as(row(is, k)[i]),
                           y = of_gemm[precision]->as(row(&b, k)[j]);
                    sum += x * y, size += fabs(x * y);
                }
                if (!(fabs(row(&c, i)[j] - sum) <=
                      (of_gemm[precision]->sum + of_gemm[precision]->root * sqrt(N)) * size))
                    fail_msg("%s, way %d: C[%ld, %ld] is %g, not %g", precision_names[precision], how, i, j,
                             row(&c, i)[j], sum);
            }
        discard(&a);
        discard(&b);
        discard(&c);
        discard(&d);
    }
}

/* A result that the library would not have where it belongs, as its rows are not aligned, and that is larger
 * than the memory beside. */
static void large_and_odd(void **state) {
    enum { M = 4200, N = 4201 }; /* 67.3 MiB */
    const struct ops *ops = ops_of(PRECISION_BF16);
    (void)state;
    if (!ops) return;
    struct product x = make_product('N', 'T', M, N, 1, 0, 0, 1, 1);
    upload(&x.a);
    upload(&x.b);
    snprintf(text, sizeof text, "large and odd");
    call_checked(ops, GEMM, &x, 1, 0, false);
    discard_product(&x);
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
        cmocka_unit_test(shapes),      cmocka_unit_test(not_finite),       cmocka_unit_test(empty),
        cmocka_unit_test(conversions), cmocka_unit_test(changed_operands), cmocka_unit_test(large_and_odd),
        cmocka_unit_test(many_shapes),
    };
    return cmocka_run_group_tests(tests, device_begin, NULL);
}
