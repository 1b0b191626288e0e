/* The few routines of LAPACK that are used, for the build's number type, on memory of the caller. Private to
 * lowrank/.
 *
 * LAPACK's matrices are by columns, those of this program by rows: [n, k] of the one is [k, n] of the other
 * in memory. So bases are kept as rows, [k, n], and nothing is ever transposed for LAPACK's sake. */
#ifndef GDN_LAPACK_H
#define GDN_LAPACK_H

#include <stdbool.h>

#include "kernels/base/real.h"

/* Elements of work that suffice the two functions below, for any sizes up to these. */
long lapack_basis_work(long n, long k);
long lapack_svd_work(long m, long n);

/* The rows of a [k, n], k ≤ n, become orthonormal: a basis of what they span, completed arbitrarily where
 * they are dependent. tau [k]. `triangle` (NULL: not wanted) [k, k] becomes L, lower, with a before = L · a
 * after. */
void lapack_basis(long n, long k, real *a, real *triangle, real *tau, real *work, long work_count);

/* a [m, n] = left · diag(sigma) · right with s = min(m, n): left [m, s], sigma [s], falling, right [s, n].
 * a is destroyed; integers [8·s]. False where the iteration does not converge. */
bool lapack_svd(long m, long n, real *a, real *left, real *sigma, real *right, int *integers, real *work,
                long work_count);

#endif
