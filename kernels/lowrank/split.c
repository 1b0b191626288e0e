/* Factors that are only kept or sent for a while, within a training step. */
#include <math.h>

#include "kernels/lowrank/range.h"

enum { POWER = 1, TILE = 32 };

/* y [n, m] = x [m, n] transposed, in tiles that fit a cache. */
static void transpose(long m, long n, const real *x, real *y) {
    for (long i = 0; i < m; i += TILE)
        for (long j = 0; j < n; j += TILE)
            for (long a = i; a < m && a < i + TILE; a++)
                for (long b = j; b < n && b < j + TILE; b++) y[b * m + a] = x[a * n + b];
}

void lowrank_split(struct lowrank *w, long T, long D, const real *x, long rank, uint64_t seed, real *q,
                   real *b) {
    const struct ops *ops = w->ops;
    const struct lowrank_ranks *r = w->ranks;
    real not_finite = !isfinite(squares_of(ops, T * D, x));
    if (r) r->sum(r->with, &not_finite, 1);
    if (not_finite > 0) { /* whatever QR makes of that */
        ops->zero(T * rank, q);
        for (long i = 0; i < rank * D; i++) b[i] = NAN;
        return;
    }
    range_find(w, T, D, x, rank, POWER, seed);
    ops->gemm('N', 'N', rank, D, T, 1, w->sketch, T, x, D, 0, b, D);
    if (r) r->sum(r->with, b, rank * D);
    transpose(rank, T, w->sketch, q);
}

void lowrank_split_planned(const struct lowrank_ranks *r, long T, long D, long rank) {
    if (!r) return;
    r->sum(r->with, NULL, 1);
    for (int i = 0; i <= POWER; i++) {
        if (i > 0) r->sum(r->with, NULL, rank * D);
        r->gather(r->with, NULL, rank, rank < T ? rank : T, NULL);
    }
    r->sum(r->with, NULL, rank * D);
}

void lowrank_join(const struct ops *ops, long T, long D, long rank, const real *q, const real *b, real *x) {
    ops->gemm('N', 'N', T, D, rank, 1, q, rank, b, D, 0, x, D);
}
