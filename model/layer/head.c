/* Final norm, logits, cross entropy and their gradients, in blocks of rows so that logits never take T·V. */
#include "model/layer/stream.h"

/* Losses of `rows` tokens from logits [rows, V], which become their gradient where `scale` is not 0. Where
 * the vocabulary is divided, three reductions (Shoeybi et al. 2019) make do without the others' logits: the
 * largest logit, and together the sum of exponentials and the target's logit. */
static void block_loss(struct model *m, long rows, const int32_t *target, double scale, real *losses) {
    const struct ops *ops = m->ops;
    long V = m->trunk->V;
    if (m->tensor->size == 1) {
        ops->cross_entropy(rows, V, m->trunk->logits, V, target, scale, losses);
        return;
    }
    ops->row_largest(rows, V, m->trunk->logits, V, m->trunk->largest);
    axis_max(m->tensor, m->trunk->largest, rows);
    ops->part_exp(rows, V, m->trunk->logits, V, target, m->trunk->first_token, m->trunk->largest,
                  m->trunk->exp_sums);
    axis_sum(m->tensor, m->trunk->exp_sums, 2 * rows);
    ops->part_cross_entropy(rows, V, m->trunk->logits, V, target, m->trunk->first_token, m->trunk->exp_sums,
                            scale, losses);
}

void head_norm(struct model *m, const real *x) {
    m->trunk->whole_of = NULL; /* nf may be there */
    m->ops->rms_norm(m->rows, m->config.hidden_size, x, m->trunk->norm.w, m->config.norm_eps,
                     own_rows(m, m->trunk->nf), m->trunk->rstdf);
    stream_whole(m, m->trunk->nf);
}

void head_logits(struct model *m, long at, long rows) {
    long D = m->config.hidden_size, V = m->trunk->V;
    m->ops->gemm('N', 'T', rows, V, D, 1, m->trunk->nf + at * D, D, m->trunk->head.w, D, 0, m->trunk->logits,
                 V);
}

void head_loss(struct model *m, const real *x, struct loss_sums *sums) {
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, V = m->trunk->V;
    real *dnf = m->trunk->t1;
    head_norm(m, x);
    for (long at = 0; at < T; at += m->trunk->logit_rows) {
        long rows = T - at < m->trunk->logit_rows ? T - at : m->trunk->logit_rows;
        head_logits(m, at, rows);
        block_loss(m, rows, m->trunk->target + at, m->gradients ? m->pass->options->token_weight : 0,
                   m->trunk->losses + at);
        if (!m->gradients) continue;
        ops->gemm('N', 'N', rows, D, V, 1, m->trunk->logits, V, m->trunk->head.w, D, 0, dnf + at * D, D);
        ops->gemm('T', 'N', V, D, rows, 1, m->trunk->logits, V, m->trunk->nf + at * D, D, 1, m->trunk->head.g,
                  D);
    }
    if (m->tensor->index == 0) ops->add_up(T, m->trunk->losses, &sums->ce); /* every rank has them all */
    if (!m->gradients) return;
    ops->zero(T * D, m->g);
    stream_sum(m, dnf);
    ops->rms_norm_back(m->rows, D, x, m->trunk->norm.w, m->trunk->rstdf, own_rows(m, dnf), own_rows(m, m->g),
                       m->trunk->norm.g);
    m->g_whole = !m->rows_divided;
}
