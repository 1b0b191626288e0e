/* Final norm, logits, cross entropy and their gradients, in blocks of rows so that logits never take T·V. */
#include "model/internal.h"

void head_loss(struct model *m, const real *x, const struct loss_options *options, bool train,
               struct loss_sums *sums) {
    const struct ops *ops = m->ops;
    long T = m->T, D = m->config.hidden_size, V = m->config.vocab_size;
    ops->rms_norm(T, D, x, m->norm.w, m->config.norm_eps, m->nf, m->rstdf);
    real *dnf = m->t1;
    for (long at = 0; at < T; at += m->logit_rows) {
        long rows = T - at < m->logit_rows ? T - at : m->logit_rows;
        const real *nf = m->nf + at * D;
        ops->gemm('N', 'T', rows, V, D, 1, nf, D, m->head.w, D, 0, m->logits, V);
        ops->cross_entropy(rows, V, m->logits, V, m->target + at, train ? options->token_weight : 0,
                           m->losses + at);
        if (!train) continue;
        ops->gemm('N', 'N', rows, D, V, 1, m->logits, V, m->head.w, D, 0, dnf + at * D, D);
        ops->gemm('T', 'N', V, D, rows, 1, m->logits, V, nf, D, 1, m->head.g, D);
    }
    for (long t = 0; t < T; t++) sums->ce += m->losses[t];
    if (!train) return;
    ops->zero(T * D, m->g);
    ops->rms_norm_back(T, D, x, m->norm.w, m->rstdf, dnf, m->g, m->norm.g);
}
