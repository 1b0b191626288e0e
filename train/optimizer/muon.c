/* Muon (Jordan et al. 2024; Liu et al. 2025; model.md, 6): of the matrices in layers the momentum,
 * orthogonalised, is the update. All other tensors are AdamW's. */
#include <math.h>
#include <string.h>

#include "train/optimizer/rules.h"

static const real A = (real)3.4445, B = (real)-4.7750, C = (real)2.0315;

static bool is_hidden(const struct row *row) {
    return row->ndim == 2 && !row->elementwise && !strncmp(row->name, "layers.", 7);
}

static const struct moments *moments(const struct row *row) {
    static const struct moments one = {1, {"momentum"}};
    return is_hidden(row) ? &one : optimizer_adamw.moments(row);
}

static enum whole whole(const struct train_config *train, const struct row *row) {
    if (!is_hidden(row)) return WHOLE_NONE;
    if (!row->heads || train->muon.split == MUON_QKV) return WHOLE_TENSOR;
    return train->muon.split == MUON_WHOLE ? WHOLE_JOINED : WHOLE_HEADS;
}

static void prepare(const struct update *u) {
    u->ops->nesterov(u->count, u->gradient, u->moment[0], u->gscale, u->train->muon.momentum);
}

/* ------------------------------------------------------------------------------------------ Newton–Schulz */

/* Of the smaller side n: squares [n, n], the other matrix of a step [rows, columns]. */
static long workspace(long rows, long columns) {
    long n = rows < columns ? rows : columns;
    return 2 * n * n + rows * columns;
}

static double flops(const struct train_config *train, long rows, long columns) {
    double n = (double)(rows < columns ? rows : columns), all = (double)rows * (double)columns;
    return train->muon.steps * (2 * all * n + 2 * n * n * n + 2 * all * n);
}

/* y = factor·(a X + (b A + c A²) X), A = X Xᵀ; of a tall matrix a X + X (b A + c A²), A = Xᵀ X, which is the
 * same of its transpose. A and the sum in brackets are symmetric. */
static void step(const struct matrix *m, real factor, const real *x, real *square, real *sum, real *y) {
    const struct ops *ops = m->ops;
    const bool tall = m->rows > m->columns;
    const long n = tall ? m->columns : m->rows, long_side = tall ? m->rows : m->columns, ld = m->columns;
    ops->gemm(tall ? 'T' : 'N', tall ? 'N' : 'T', n, n, long_side, 1, x, ld, x, ld, 0, square, n);
    ops->copy(n * n, square, sum);
    ops->gemm('N', 'N', n, n, n, C, square, n, square, n, B, sum, n);
    ops->copy(m->rows * m->columns, x, y);
    if (tall)
        ops->gemm('N', 'N', m->rows, n, n, factor, x, ld, sum, n, factor * A, y, ld);
    else
        ops->gemm('N', 'N', n, m->columns, n, factor, sum, n, x, ld, factor * A, y, ld);
}

/* The last step scales by 0.2·√(longer side), so that the root mean square is about that of AdamW's updates.
 */
static void orthogonalize(const struct matrix *m) {
    const int steps = m->train->muon.steps;
    const long n = m->rows < m->columns ? m->rows : m->columns, longer = m->rows + m->columns - n;
    const real last = (real)(0.2 * sqrt((double)longer));
    real *square = m->workspace, *sum = square + n * n, *other = sum + n * n;
    real *from = steps % 2 ? other : m->x, *to = steps % 2 ? m->x : other; /* so that it ends in m->x */
    m->ops->unit_norm(m->rows * m->columns, m->x, 1e-7, from);
    for (int i = 1; i <= steps; i++) {
        step(m, i < steps ? 1 : last, from, square, sum, to);
        real *swap = from;
        from = to, to = swap;
    }
}

static void update(const struct update *u) {
    if (is_hidden(u->row))
        u->ops->descend(u->count, u->weight, u->gradient, u->lr, u->lr * u->decay, u->train->cautious_decay);
    else
        optimizer_adamw.update(u);
}

const struct optimizer_rule optimizer_muon = {
    .name = "muon",
    .moments = moments,
    .update = update,
    .whole = whole,
    .prepare = prepare,
    .matrix = orthogonalize,
    .workspace = workspace,
    .flops = flops,
};
