#include "kernels/lowrank/lowrank.h"

#include <math.h>
#include <string.h>

#include "kernels/base/status.h"
#include "kernels/lowrank/lapack.h"
#include "kernels/lowrank/range.h"

static long min(long a, long b) {
    return a < b ? a : b;
}

static long max(long a, long b) {
    return a > b ? a : b;
}

long lowrank_of_ratio(long T, long D, double ratio) {
    long side = min(T, D), rank = (long)(ratio * (double)side);
    return rank < 1 ? 1 : rank > side ? side : rank;
}

/* Columns of the sketch for factors of that rank. */
static long sketch_width(long T, long D, long rank) {
    return min(rank + LOWRANK_OVERSAMPLE, min(T, D));
}

static void *take(struct arena *arena, long count, size_t size) {
    return arena_take(arena, (size_t)count * size);
}

void lowrank_lay_out(struct lowrank *w, struct arena *arena, const struct ops *ops, long T, long D, long rank,
                     bool full) {
    long k = sketch_width(T, D, rank), side = full ? min(T, D) : k;
    *w = (struct lowrank){.ops = ops, .T = T, .D = D, .rank = rank, .full = full};
    w->work_count = max(lapack_basis_work(max(T, D), k), lapack_svd_work(k, k));
    if (full) w->work_count = max(w->work_count, lapack_svd_work(T, D));
    w->sketch = take(arena, k * T, sizeof(real));
    w->basis = take(arena, k * D, sizeof(real));
    w->triangle = take(arena, k * k, sizeof(real));
    w->left = take(arena, full ? T * side : k * k, sizeof(real));
    w->right = take(arena, full ? side * D : k * k, sizeof(real));
    w->sigma = take(arena, side, sizeof(real));
    w->tau = take(arena, k, sizeof(real));
    w->rows = take(arena, min(T, LOWRANK_ROWS) * D, sizeof(real));
    w->work = take(arena, w->work_count, sizeof(real));
    w->integers = take(arena, 8 * side, sizeof(int));
    if (full) w->copy = take(arena, T * D, sizeof(real));
}

void lowrank_lay_out_divided(struct lowrank *w, struct arena *arena, const struct ops *ops, long T, long D,
                             long rank, const struct lowrank_peers *peers) {
    if (!peers) {
        lowrank_lay_out(w, arena, ops, T, D, rank, false);
        return;
    }
    const long k = rank, all = peers->size * min(k, T);
    *w = (struct lowrank){.ops = ops, .T = T, .D = D, .rank = rank, .peers = peers};
    w->work_count = lapack_basis_work(max(max(T, D), all), k);
    w->sketch = take(arena, k * T, sizeof(real));
    w->turned = take(arena, k * T, sizeof(real));
    w->basis = take(arena, range_even(peers->size, k * D), sizeof(real));
    w->triangle = take(arena, k * k, sizeof(real));
    w->beside = take(arena, k * all, sizeof(real));
    w->tau = take(arena, k, sizeof(real));
    w->work = take(arena, w->work_count, sizeof(real));
}

static int no_convergence(long T, long D) {
    return gdn_fail(GDN_INTERNAL, "LAPACK's SVD of a matrix [%ld, %ld] does not converge", T, D);
}

static int validate_scratch(const struct lowrank *w, long T, long D, long rank) {
    if (T <= w->T && D <= w->D && rank <= w->rank) return 0;
    return gdn_fail(GDN_INTERNAL, "a matrix [%ld, %ld] and rank %ld for scratch of [%ld, %ld] and rank %ld",
                    T, D, rank, w->T, w->D, w->rank);
}

/* x ≈ Q·B, B = L·P with P's rows orthonormal, L = left · diag(sigma) · right: so U = Q·left, Vt = right·P.
 * The small SVD is one of [k, k], whatever T and D are. */
int lowrank_factor(struct lowrank *w, long T, long D, const real *x, long rank, uint64_t seed,
                   struct factors *out) {
    const struct ops *ops = w->ops;
    TRY(factors_begin(ops, T, D, x, rank, out));
    TRY(validate_scratch(w, T, D, rank));
    long k = sketch_width(T, D, rank);
    range_find(w, T, D, x, k, LOWRANK_POWER, seed);
    ops->gemm('N', 'N', k, D, T, 1, w->sketch, T, x, D, 0, w->basis, D);
    lapack_basis(D, k, w->basis, w->triangle, w->tau, w->work, w->work_count);
    if (!lapack_svd(k, k, w->triangle, w->left, w->sigma, w->right, w->integers, w->work, w->work_count))
        return no_convergence(T, D);
    ops->gemm('T', 'N', T, rank, k, 1, w->sketch, T, w->left, k, 0, out->u, rank);
    ops->gemm('N', 'N', rank, D, k, 1, w->right, k, w->basis, D, 0, out->vt, D);
    ops->copy(rank, w->sigma, out->sigma);
    factors_end(w, x, w->sketch, out);
    return 0;
}

/* Drops all but the first columns of U; sigma and Vt need no change. */
static void keep(struct factors *f, long rank) {
    for (long t = 1; t < f->T; t++) memmove(f->u + t * rank, f->u + t * f->rank, (size_t)rank * sizeof(real));
    f->rank = rank;
}

/* Twice the rank until it is enough: together that takes less than twice as long as the last. Without its
 * last columns, factors miss in addition exactly what these columns hold. */
int lowrank_to(struct lowrank *w, long T, long D, const real *x, double tolerance, uint64_t seed,
               struct factors *out) {
    enum { FIRST = 16 };
    long limit = min(w->rank, min(T, D)), rank = min(FIRST, limit);
    TRY(lowrank_factor(w, T, D, x, rank, seed, out));
    while (!(out->error <= tolerance) && rank < limit) {
        rank = min(2 * rank, limit);
        TRY(lowrank_factor(w, T, D, x, rank, seed, out));
    }
    for (; rank > 1; rank--) {
        double last = out->norm > 0 ? (double)out->sigma[rank - 1] / out->norm : 0;
        double without = hypot(out->error, last);
        if (!(without <= tolerance)) break;
        out->error = without;
    }
    keep(out, rank);
    return 0;
}
