#include "model/base/terms.h"

#include "dist/comm/axis_begun.h"

static void multiply(struct model *m, const struct terms *x, long row, long rows) {
    long D = m->config.hidden_size;
    real *out = x->out + row * D;
    multiply_weight(m, x->weight_id, 'N', x->transposed, rows, D, x->k, 1, x->a + row * x->lda, x->lda, x->w,
                    x->ldw, x->beta, out, D);
    if (x->bias && m->tensor->index == 0) m->ops->add_columns(rows, D, 1, x->bias, 0, out, D);
}

/* Rows of a piece, T where there are no pieces: as many pieces as were asked for, or more where the axis has
 * no room for such large ones. A single row is no pieces. */
static long piece_rows(const struct model *m) {
    long pieces = m->layout.tensor_pieces;
    if (pieces < 2 || m->tensor->size == 1 || m->T < 2) return m->T;
    long rows = (m->T + pieces - 1) / pieces, most = axis_begun_max(m->tensor) / m->config.hidden_size;
    return rows < most ? rows : most;
}

void linear_terms(struct model *m, const struct terms *x) {
    long D = m->config.hidden_size, most = piece_rows(m);
    if (most == m->T) {
        multiply(m, x, 0, m->T);
        return;
    }
    for (long row = 0; row < m->T; row += most) {
        long rows = m->T - row < most ? m->T - row : most;
        multiply(m, x, row, rows);
        axis_sum_begin(m->tensor, x->out + row * D, rows * D);
    }
    m->begun = x->out;
}

bool end_terms(struct model *m, const real *x) {
    if (!m->begun || m->begun != x) return false;
    axis_sum_end(m->tensor);
    m->begun = NULL;
    return true;
}
