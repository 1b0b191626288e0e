/* What makes factors impossible, and how well factors give their matrix. */
#include <float.h>
#include <math.h>

#include "kernels/base/status.h"
#include "kernels/lowrank/range.h"

static const double EPSILON = sizeof(real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;

/* Norms above may leave the range of `real` where products are summed, or of double where squares are. */
static const double LARGEST = sizeof(real) == sizeof(float) ? 1e33 : 1e150;

int factors_begin(const struct ops *ops, long T, long D, const real *x, long rank, struct factors *out) {
    long side = T < D ? T : D;
    if (rank < 1 || rank > side)
        return gdn_fail(GDN_INPUT,
                        "rank %ld is not between 1 and %ld, the smaller side of the matrix [%ld, %ld]", rank,
                        side, T, D);
    double norm = sqrt(squares_of(ops, T * D, x));
    if (!(norm <= LARGEST))
        return gdn_fail(GDN_INPUT,
                        "an element of the matrix [%ld, %ld] is NaN or infinite, or its norm is above %g", T,
                        D, LARGEST);
    out->T = T, out->D = D, out->rank = rank, out->norm = norm;
    return 0;
}

static void scale_columns(const struct factors *f, real *scaled) {
    for (long t = 0; t < f->T; t++)
        for (long j = 0; j < f->rank; j++) scaled[t * f->rank + j] = f->u[t * f->rank + j] * f->sigma[j];
}

void lowrank_expand(const struct ops *ops, const struct factors *f, real *scaled, real *x) {
    scale_columns(f, scaled);
    ops->gemm('N', 'N', f->T, f->D, f->rank, 1, scaled, f->rank, f->vt, f->D, 0, x, f->D);
}

/* ‖x − U diag(sigma) Vt‖², some rows at a time. */
static double residual(struct lowrank *w, const real *x, real *scaled, const struct factors *f) {
    const struct ops *ops = w->ops;
    double sum = 0;
    scale_columns(f, scaled);
    for (long t = 0; t < f->T; t += LOWRANK_ROWS) {
        long rows = f->T - t < LOWRANK_ROWS ? f->T - t : LOWRANK_ROWS;
        ops->gemm('N', 'N', rows, f->D, f->rank, 1, scaled + t * f->rank, f->rank, f->vt, f->D, 0, w->rows,
                  f->D);
        ops->add_columns(rows, f->D, -1, x + t * f->D, f->D, w->rows, f->D);
        sum += squares_of(ops, rows * f->D, w->rows);
    }
    return sum;
}

/* U·diag(sigma)·Vt is x projected on the columns of U, so the square of the error is the difference of two
 * squares. Of that, rounding hides up to some 40 EPSILON. Where this may be a thousandth of it, what the
 * factors miss is summed itself, which takes as long as one of the products that made them. */
void factors_end(struct lowrank *w, const real *x, real *scaled, struct factors *out) {
    double whole = out->norm * out->norm, square = whole;
    for (long i = 0; i < out->rank; i++) square -= (double)out->sigma[i] * out->sigma[i];
    if (square < 3e4 * EPSILON * whole) square = residual(w, x, scaled, out);
    out->error = whole > 0 ? sqrt(square / whole) : 0;
}
