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

/* Whether x is finite, on all peers. */
static bool all_finite(struct lowrank *w, long n, const real *x) {
    const struct lowrank_peers *p = w->peers;
    const real here = isfinite(squares_of(w->ops, n, x));
    if (!p) return here > 0;
    p->gather(p->with, &here, 1, 1, w->beside);
    for (int i = 0; i < p->size; i++)
        if (!(w->beside[i] > 0)) return false;
    return true;
}

void lowrank_split(struct lowrank *w, long T, long D, const real *x, long rank, uint64_t seed, real *q,
                   real *b) {
    const struct ops *ops = w->ops;
    if (!all_finite(w, T * D, x)) { /* whatever QR makes of that */
        ops->zero(T * rank, q);
        for (long i = 0; i < rank * D; i++) b[i] = NAN;
        return;
    }
    range_find(w, T, D, x, rank, POWER, seed);
    range_project(w, T, D, x, rank, b);
    transpose(rank, T, w->sketch, q);
}

void lowrank_split_planned(const struct lowrank_peers *p, long T, long D, long rank) {
    if (!p) return;
    const long m = rank < T ? rank : T, projected = range_even(p->size, rank * D);
    p->gather(p->with, NULL, 1, 1, NULL);
    for (int i = 0; i <= POWER; i++) {
        if (i > 0) p->sum(p->with, NULL, projected);
        p->gather(p->with, NULL, rank, m, NULL);
        p->sum(p->with, NULL, rank * p->size * m);
    }
    p->sum(p->with, NULL, projected);
}

long lowrank_split_longest(int peers, long T, long D, long rank) {
    const long projected = range_even(peers, rank * D), beside = rank * peers * (rank < T ? rank : T);
    return projected > beside ? projected : beside;
}

void lowrank_join(const struct ops *ops, long T, long D, long rank, const real *q, const real *b, real *x) {
    ops->gemm('N', 'N', T, D, rank, 1, q, rank, b, D, 0, x, D);
}
