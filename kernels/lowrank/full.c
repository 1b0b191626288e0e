#include "kernels/base/status.h"
#include "kernels/lowrank/lapack.h"
#include "kernels/lowrank/range.h"

static int validate_scratch(const struct lowrank *w, long T, long D) {
    if (w->full && T <= w->T && D <= w->D) return 0;
    return gdn_fail(GDN_INTERNAL, "the full SVD of a matrix [%ld, %ld] for scratch of %s [%ld, %ld]", T, D,
                    w->full ? "" : "no full SVD,", w->T, w->D);
}

int lowrank_full(struct lowrank *w, long T, long D, const real *x, long rank, real *spectrum,
                 struct factors *out) {
    const struct ops *ops = w->ops;
    long side = T < D ? T : D;
    TRY(factors_begin(ops, T, D, x, rank, out));
    TRY(validate_scratch(w, T, D));
    ops->copy(T * D, x, w->copy);
    if (!lapack_svd(T, D, w->copy, w->left, w->sigma, w->right, w->integers, w->work, w->work_count))
        return gdn_fail(GDN_INTERNAL, "LAPACK's SVD of a matrix [%ld, %ld] does not converge", T, D);
    ops->copy_columns(T, rank, w->left, side, out->u, rank);
    ops->copy(rank * D, w->right, out->vt);
    ops->copy(rank, w->sigma, out->sigma);
    if (spectrum) ops->copy(side, w->sigma, spectrum);
    factors_end(w, x, w->copy, out);
    return 0;
}
