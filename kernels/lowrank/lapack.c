#include "kernels/lowrank/lapack.h"

#include <lapacke.h>
#include <limits.h>

#include "kernels/base/blas_threads.h"

#ifdef GDN_DOUBLE
#define LAPACK(routine) LAPACKE_d##routine##_work
#else
#define LAPACK(routine) LAPACKE_s##routine##_work
#endif

static long min(long a, long b) {
    return a < b ? a : b;
}

static long max(long a, long b) {
    return a > b ? a : b;
}

/* A size that LAPACK tells in `real` may have been rounded down. */
static long told(real size) {
    return (long)(1.001 * (double)size) + 1;
}

/* What LAPACK is asked about for the plan of a size that no machine has: it counts in 32 bits. */
static int asked(long size) {
    return (int)min(size, INT_MAX);
}

long lapack_basis_work(long n, long k) {
    blas_one_thread();
    real factor = 0, form = 0, none = 0;
    const int rows = asked(n), columns = asked(k);
    LAPACK(geqrf)(LAPACK_COL_MAJOR, rows, columns, &none, rows, &none, &factor, -1);
    LAPACK(orgqr)(LAPACK_COL_MAJOR, rows, columns, columns, &none, rows, &none, &form, -1);
    return max(max(told(factor), told(form)), k);
}

/* What it would like for these sizes, and no less than it demands for smaller ones, which grows with them. */
long lapack_svd_work(long m, long n) {
    long s = min(m, n), demanded = 4 * s * s + 7 * s + max(m, n);
    real liked = 0, none = 0;
    int integer = 0;
    LAPACK(gesdd)
    (LAPACK_COL_MAJOR, 'S', asked(n), asked(m), &none, asked(n), &none, &none, asked(n), &none, asked(s),
     &liked, -1, &integer);
    return max(demanded, told(liked));
}

/* The QR factorisation of a's transpose: by columns, a is [n, k]. */
void lapack_basis(long n, long k, real *a, real *triangle, real *tau, real *work, long work_count) {
    LAPACK(geqrf)(LAPACK_COL_MAJOR, (int)n, (int)k, a, (int)n, tau, work, (int)work_count);
    for (long i = 0; triangle && i < k; i++)
        for (long j = 0; j < k; j++) triangle[i * k + j] = j <= i ? a[i * n + j] : 0;
    LAPACK(orgqr)(LAPACK_COL_MAJOR, (int)n, (int)k, (int)k, a, (int)n, tau, work, (int)work_count);
}

/* By columns a is [n, m] and its factors are in the other order. */
bool lapack_svd(long m, long n, real *a, real *left, real *sigma, real *right, int *integers, real *work,
                long work_count) {
    int s = (int)min(m, n);
    return LAPACK(gesdd)(LAPACK_COL_MAJOR, 'S', (int)n, (int)m, a, (int)n, sigma, right, (int)n, left, s,
                         work, (int)work_count, integers) == 0;
}
