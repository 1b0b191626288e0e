#include "kernels/lowrank/range.h"

#include <stddef.h>

#include "kernels/base/random.h"
#include "kernels/lowrank/lapack.h"

/* Uniform in (−1, 1), four numbers from each 64 random bits: a sketch needs no more of them than that they
 * lie in no particular direction, and normal ones would take as long as a product with x. Signs alone are too
 * few: on two columns, half of all pairs of them are parallel. */
static void draw(uint64_t seed, long n, real *x) {
    const uint64_t what = random_name("lowrank");
    for (long i = 0; i < n; i += 4) {
        uint64_t bits = random_bits(seed, what, (uint64_t)(i / 4));
        for (long j = i; j < n && j < i + 4; j++, bits >>= 16)
            x[j] = (real)((double)(bits & 0xffff) + 0.5 - 0x8000) / 0x8000;
    }
}

/* Rows of the sketch become orthonormal. Where its columns are divided, each peer first makes its own so, as
 * far as there are enough of them; what is left of them, a triangle each, side by side, the first peer makes
 * orthonormal, and each turns its own by its part of that (TSQR; Demmel, Grigori, Hoemmen & Langou 2012). One
 * does it for all, since where rows are dependent another processor may complete them otherwise. */
static void sketch_basis(struct lowrank *w, long T, long k) {
    const struct lowrank_peers *p = w->peers;
    if (!p) {
        lapack_basis(T, k, w->sketch, NULL, w->tau, w->work, w->work_count);
        return;
    }
    const bool enough = T >= k;
    const long m = enough ? k : T, all = p->size * m;
    const real *own = w->beside + p->index * m; /* [k, m] of them */
    if (enough) lapack_basis(T, k, w->sketch, w->triangle, w->tau, w->work, w->work_count);
    p->gather(p->with, enough ? w->triangle : w->sketch, k, m, w->beside);
    if (p->index)
        w->ops->zero(k * all, w->beside);
    else
        lapack_basis(all, k, w->beside, NULL, w->tau, w->work, w->work_count);
    p->sum(p->with, w->beside, k * all);
    if (!enough) {
        w->ops->copy_columns(k, T, own, all, w->sketch, T);
        return;
    }
    w->ops->gemm('N', 'N', k, T, k, 1, own, all, w->sketch, T, 0, w->turned, T);
    real *turned = w->turned;
    w->turned = w->sketch, w->sketch = turned;
}

long range_even(int peers, long count) {
    return (count + peers - 1) / peers * peers;
}

void range_project(struct lowrank *w, long T, long D, const real *x, long k, real *out) {
    const struct lowrank_peers *p = w->peers;
    real *here = p ? w->basis : out; /* which has room for what is summed */
    w->ops->gemm('N', 'N', k, D, T, 1, w->sketch, T, x, D, 0, here, D);
    if (!p) return;
    const long count = range_even(p->size, k * D);
    w->ops->zero(count - k * D, here + k * D);
    p->sum(p->with, here, count);
    if (out != here) w->ops->copy(k * D, here, out);
}

/* Neither x nor its transpose is better to begin with, whichever of T and D is larger: both have as many
 * products with x, and as many factorisations of [T, k] as of [D, k]. */
void range_find(struct lowrank *w, long T, long D, const real *x, long k, int power, uint64_t seed) {
    const struct ops *ops = w->ops;
    draw(seed, k * D, w->basis);
    for (int i = 0; i <= power; i++) {
        if (i > 0) {
            range_project(w, T, D, x, k, w->basis);
            lapack_basis(D, k, w->basis, NULL, w->tau, w->work, w->work_count);
        }
        ops->gemm('N', 'T', k, T, D, 1, w->basis, D, x, D, 0, w->sketch, T);
        sketch_basis(w, T, k);
    }
}
