/* Products by rows (ops_by_rows): each row of C has the bits that it has alone, whatever rows there are
 * beside it, however A and B lie, on any number of threads. What the products are is compared in ops/. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backends/backends.h"
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

static real a[(ROWS + GAP) * (DEEPEST + GAP)], b[WIDEST * (DEEPEST + GAP)], was[ROWS * WIDEST], one[ROWS * WIDEST],
    all[ROWS * WIDEST];

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

static void rows_alone(void **state) {
    static const long shapes[][2] = {{1, 1}, {7, 5}, {16, 16}, {33, 48}, {17, 131}, {300, 128}, {257, 768}};
    static const real factors[][2] = {{1, 0}, {1, 1}, {(real)0.3, 1}, {(real)0.3, (real)-1.7}};
    (void)state;
    fill(a, sizeof a / sizeof *a, 1), fill(b, sizeof b / sizeof *b, 2),
        fill(was, sizeof was / sizeof *was, 3);
    for (int i = 0; test_backends()[i]; i++) {
        const struct ops *ops = ops_by_rows(test_backends()[i]);
        assert_non_null(ops);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int variant = 0; variant < 16; variant++)
                same_bits(ops, variant & 1 ? 'T' : 'N', variant & 2 ? 'N' : 'T', shapes[s][0], shapes[s][1],
                          factors[variant / 4][0], factors[variant / 4][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_alone)};
    test_backend_check();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
