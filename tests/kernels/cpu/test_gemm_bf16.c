/* Products of bf16 on the CPU backend where the comparison with the reference (ops/) would take too long or
 * has another question: the rounding itself, operands that are copied in pieces, which products are in bf16
 * at all. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/backends/backends.h"
#include "kernels/base/bf16.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

static const double EPSILON = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;

/* Nearest, ties to even, of what lies between 1 and the two numbers of bf16 above it, 2⁻⁷ apart. */
static void rounding(void **state) {
    (void)state;
    const float step = 0x1p-7f;
    assert_true(bf16_round(1) == 1 && bf16_round((real)-3.5) == (real)-3.5 && bf16_round(0) == 0);
    assert_true(bf16_round((real)(1 + 0.49 * step)) == 1);
    assert_true(bf16_round((real)(1 + 0.5 * step)) == 1);
    assert_true(bf16_round((real)(1 + 0.51 * step)) == 1 + step);
    assert_true(bf16_round((real)(1 + 1.5 * step)) == 1 + 2 * step);
    assert_true(bf16_round((real)(-1 - 1.5 * step)) == -1 - 2 * step);
    assert_true(bf16_round((real)0x1.00ffp-130) == (real)0x1.00p-130); /* below the least normal float, too */
    assert_true(isinf(bf16_round((real)INFINITY)) && bf16_round((real)-INFINITY) < 0);
    assert_true(isinf(bf16_round((real)FLT_MAX))); /* nearer to 2^128 than to the largest number */
    assert_true(isnan(bf16_round((real)NAN)) && isnan(bf16_round(-(real)NAN)));
    for (uint32_t code = 0; code < 65536; code++) /* what is bf16 stays, but that a NaN becomes a quiet one */
        assert_true(to_bf16(from_bf16((uint16_t)code)) == code || isnan(from_bf16((uint16_t)code)));
}

static real *numbers(long count) {
    real *x = malloc((size_t)count * sizeof *x);
    uint64_t state = 1;
    assert_non_null(x);
    for (long i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (real)((double)(state >> 40) / (1 << 23) - 1);
    }
    return x;
}

/* Some elements of C = 0.75·op(A)·op(B) + beta·C against sums in double of `round`ed operands. Operands are
 * of order 1 and the sum is of k terms: √k roundings of it, with a factor as in ops/harness.c. An operand
 * that is not rounded, or cut off, is off by up to 2⁻⁸, in a sum by √k·2⁻⁹ in the mean, hundreds of times as
 * much. */
static void compare_op(char ta, char tb, long m, long n, long k, real beta, real (*rounded)(real)) {
    const struct ops *ops = ops_in(test_backend("cpu"), PRECISION_BF16);
    real *a = numbers(m * k), *b = numbers(n * k), *c = numbers(m * n), *was = numbers(m * n);
    assert_non_null(ops);
    ops->gemm(ta, tb, m, n, k, (real)0.75, a, ta == 'N' ? k : m, b, tb == 'N' ? n : k, beta, c, n);
    for (long at = 0; at < m * n; at += m * n / 97 + 1) {
        long i = at / n, j = at % n;
        double sum = beta * (double)was[at],
               tolerance = EPSILON * (16 + 4 * sqrt((double)k)) * sqrt((double)k);
        for (long p = 0; p < k; p++)
            sum += (double)rounded((real)0.75 * a[ta == 'N' ? i * k + p : p * m + i]) *
                   (double)rounded(b[tb == 'N' ? p * n + j : j * k + p]);
        if (!(fabs(c[at] - sum) <= tolerance))
            fail_msg("%c%c [%ld, %ld, %ld] beta %g: c[%ld] is %.9g, not %.9g", ta, tb, m, n, k, (double)beta,
                     at, (double)c[at], sum);
    }
    free(a), free(b), free(c), free(was);
}

static void compare(long m, long n, long k, real beta, real (*rounded)(real)) {
    compare_op('N', 'T', m, n, k, beta, rounded);
}

/* A copy has room for 2²³ elements, and at most 2¹⁷ are summed at a time. */
static void pieces(void **state) {
    (void)state;
    compare(70, 65, (1 << 17) + 100, 0, bf16_round);  /* two sums, the second of few terms */
    compare(64, 65, (1 << 17) + 100, -2, bf16_round); /* onto what is there, scaled once */
    compare(140, 150, 1 << 16, 1, bf16_round);        /* two pieces of either */
    compare(257, 80, 300, 1, bf16_round);             /* one */
}

/* For wide products the library is asked for another kernel: on either side of where that begins. */
static void wide(void **state) {
    (void)state;
    static const long shapes[][3] = {{300, 401, 200}, {255, 400, 200}, {300, 383, 200}, {300, 400, 2048}};
    for (int i = 0; i < 4; i++)
        for (int beta = 0; beta <= 1; beta++) {
            const long m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            compare_op('N', 'T', m, n, k, (real)beta, bf16_round);
            compare_op('N', 'N', m, n, k, (real)beta, bf16_round);
            compare_op('T', 'N', m, n, k, (real)beta, bf16_round);
        }
}

static real as_it_is(real x) {
    return x;
}

/* What is narrow is fp32: rounding would cost more than it saves. */
static void narrow(void **state) {
    (void)state;
    compare(63, 100, 200, 0, as_it_is);
    compare(100, 63, 200, 1, as_it_is);
    compare(100, 200, 63, 0, as_it_is);
    compare(64, 64, 64, 0, bf16_round);
}

/* What is not finite stays so, in its row and column alone. */
static void special(void **state) {
    (void)state;
    enum { N = 64 };
    const struct ops *ops = ops_in(test_backend("cpu"), PRECISION_BF16);
    real *a = numbers(N * N), *b = numbers(N * N), *c = numbers(N * N);
    a[3 * N + 5] = (real)NAN, b[7 * N + 9] = (real)INFINITY;
    for (long i = 0; i < N * N; i++) c[i] = (real)NAN; /* with beta 0 never read */
    ops->gemm('N', 'T', N, N, N, 1, a, N, b, N, 0, c, N);
    for (long i = 0; i < N; i++)
        for (long j = 0; j < N; j++) {
            real x = c[i * N + j];
            assert_true(i == 3 ? isnan(x) : j == 7 ? !isfinite(x) : isfinite(x));
        }
    free(a), free(b), free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounding), cmocka_unit_test(pieces),
                                       cmocka_unit_test(wide), cmocka_unit_test(narrow),
                                       cmocka_unit_test(special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
