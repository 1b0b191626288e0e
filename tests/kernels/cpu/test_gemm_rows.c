/* Products by rows (ops_by_rows): each row of C has the bits that it has alone, whatever rows there are
 * beside it, however A and B lie, on any number of threads; in bf16 also where B is held. What the products
 * are is compared in ops/. */
#include <omp.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
#include "kernels/base/bf16.h"
#include "tests/support/backend.h"
#include "tests/support/unit.h"

static void fill(real *x, long count, uint64_t state) {
    for (long i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (real)((double)(state >> 40) / (1 << 23) - 1);
    }
}

/* A gap behind rows, so that they begin at any address. */
enum { ROWS = 9, WIDEST = 300, DEEPEST = 768, GAP = 3 };

static real a[(ROWS + GAP) * (DEEPEST + GAP)], b[(WIDEST * (DEEPEST + GAP) + 63) / 64 * 64],
    was[ROWS * WIDEST], one[ROWS * WIDEST], all[ROWS * WIDEST];

/* Row i of C [1 of m rows, n] alone. */
static const real *row_of(char ta, long i, long lda) {
    return a + (ta == 'N' ? i * lda : i);
}

static void same_bits(const struct ops *ops, char ta, char tb, long n, long k, real alpha, real beta) {
    const long lda = (ta == 'N' ? k : ROWS) + GAP, ldb = (tb == 'T' ? k : n) + GAP;
    memcpy(one, was, sizeof one);
    omp_set_num_threads(1);
    for (long i = 0; i < ROWS; i++)
        ops->gemm(ta, tb, 1, n, k, alpha, row_of(ta, i, lda), lda, b, ldb, beta, one + i * n, n);
    for (int threads = 1; threads <= 3; threads++)
        for (long m = 1; m <= ROWS; m++)
            for (long first = 0; first + m <= ROWS; first += 2) {
                const real *at = row_of(ta, first, lda);
                memcpy(all, was, sizeof all);
                omp_set_num_threads(threads);
                if (beta == 1) /* which is the same */
                    ops->linear(0, ta, tb, m, n, k, alpha, at, lda, b, ldb, beta, all + first * n, n);
                else
                    ops->gemm(ta, tb, m, n, k, alpha, at, lda, b, ldb, beta, all + first * n, n);
                if (memcmp(all + first * n, one + first * n, (size_t)(m * n) * sizeof(real)) != 0)
                    fail_msg("%s %c%c n %ld k %ld beta %g: rows %ld to %ld of %d threads are not those alone",
                             ops->name, ta, tb, n, k, (double)beta, first, first + m - 1, threads);
            }
}

static void each_product(const struct ops *ops) {
    static const long shapes[][2] = {{1, 1},    {7, 5},     {16, 16},   {33, 48},
                                     {17, 131}, {131, 131}, {300, 128}, {257, 768}};
    static const real factors[][2] = {{1, 0}, {1, 1}, {(real)0.3, 1}, {(real)0.3, (real)-1.7}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int variant = 0; variant < 16; variant++)
            same_bits(ops, variant & 1 ? 'T' : 'N', variant & 2 ? 'N' : 'T', shapes[s][0], shapes[s][1],
                      factors[variant / 4][0], factors[variant / 4][1]);
}

static void fill_all(void) {
    fill(a, sizeof a / sizeof *a, 1), fill(b, sizeof b / sizeof *b, 2),
        fill(was, sizeof was / sizeof *was, 3);
}

static void rows_alone(void **state) {
    (void)state;
    fill_all();
    for (int i = 0; test_backends()[i]; i++) {
        const struct ops *ops = ops_by_rows(test_backends()[i]);
        assert_non_null(ops);
        each_product(ops);
    }
}

/* C = A·Bᵀ of the CPU backend in bf16 is that of a rounded B: held, it keeps the bits, and reads the copy
 * alone; with B's own numbers, which are no bf16, it differs from that in fp32. */
static void of_held(const struct ops *fp32, const struct ops *bf16, long k) {
    enum { N = 131, COUNT = sizeof b / sizeof *b };
    static alignas(64) uint16_t copy[COUNT];
    const size_t bytes = ROWS * N * sizeof(real);
    fill_all();
    fp32->gemm('N', 'T', ROWS, N, k, 1, a, k, b, k, 0, was, N);
    bf16->gemm('N', 'T', ROWS, N, k, 1, a, k, b, k, 0, one, N);
    assert_memory_not_equal(was, one, bytes);
    bf16->hold(b, COUNT, copy);
    bf16->gemm('N', 'T', ROWS, N, k, 1, a, k, b, k, 0, all, N);
    assert_memory_equal(all, one, bytes);
    for (long i = 0; i < COUNT; i++) b[i] = bf16_round(b[i]);
    fp32->gemm('N', 'T', ROWS, N, k, 1, a, k, b, k, 0, was, N);
    assert_memory_equal(was, one, bytes);
    memset(b, 0, sizeof b);
    bf16->linear(0, 'N', 'T', ROWS, N, k, 1, a, k, b, k, 0, all, N);
    assert_memory_equal(all, one, bytes);
    each_product(bf16);
    bf16->release();
    bf16->gemm('N', 'T', ROWS, N, k, 1, a, k, b, k, 0, all, N);
    for (long i = 0; i < ROWS * N; i++) assert_true(all[i] == 0);
}

static void rows_in_bf16(void **state) {
    (void)state;
    if (!ops_all()[1]) skip(); /* the reference alone */
    const struct ops *cpu = ops_all()[0], *bf16 = ops_by_rows(ops_in(cpu, PRECISION_BF16));
    fill_all();
    each_product(bf16);
    of_held(ops_by_rows(cpu), bf16, 768);
    of_held(ops_by_rows(cpu), bf16, 131);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_alone), cmocka_unit_test(rows_in_bf16)};
    test_backend_check();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
