/* Norm, logits, cross entropy and their gradients, of the last layer and of exits, in blocks of rows so that logits never take T·V. */
#include "model/layer/stream.h"
#include "model/params/exits.h"

/* What one of the model's losses is of. */
struct reading {
    int number; /* of the exit; −1: the last layer's */
    const real *x; /* [R, W] own rows of the stream */
    struct tensor norm;
    double scale, z; /* what gradients are multiplied with; z_weight */
    double *ce;
};

/* Losses of `rows` tokens from logits [rows, V], and what R_z is the mean of where `squares` is not NULL.
 * Logits become their gradient where there are any. Where the vocabulary is divided, three reductions
 * (Shoeybi et al. 2019) make do without the others' logits: the largest logit, and together the sum of
 * exponentials and the target's logit. */
static void block_loss(struct model *m, const struct reading *of, long rows, const int32_t *target,
                       real *losses, real *squares) {
    const struct ops *ops = m->ops;
    struct trunk *t = m->trunk;
    long V = t->V;
    double cap = m->config.logit_softcap, scale = m->gradients ? of->scale : 0;
    if (m->tensor->size == 1) {
        ops->cross_entropy(rows, V, t->logits, V, target, cap, of->z, scale, losses, squares);
        return;
    }
    ops->row_largest(rows, V, t->logits, V, t->largest);
    axis_max(m->tensor, t->largest, rows);
    ops->part_exp(rows, V, t->logits, V, target, t->first_token, t->largest, cap, t->exp_sums);
    axis_sum_exact(m->tensor, t->exp_sums, 2 * rows);
    ops->part_cross_entropy(rows, V, t->logits, V, target, t->first_token, t->largest, t->exp_sums, cap,
                            of->z, scale, losses, squares);
}

void head_norm(struct model *m, struct tensor norm, const real *x) {
    struct trunk *t = m->trunk;
    t->full_of = NULL; /* nf may be there */
    m->ops->rms_norm(m->rows, m->config.hidden_size, read_streams(m, x), norm.w, m->config.norm_eps,
                     own_rows(m, t->nf), t->rstdf);
    block_full(m, t->nf);
}

void head_logits(struct model *m, long at, long rows) {
    struct trunk *t = m->trunk;
    long D = m->config.hidden_size, V = t->V;
    m->ops->gemm('N', 'T', rows, V, D, 1, t->nf + at * D, D, t->head.w, D, 0, t->logits, V);
    if (m->config.logit_softcap > 0) m->ops->softcap(rows, V, t->logits, V, m->config.logit_softcap);
}

static void show_logits(const struct model *m, const struct reading *of, long at, long rows) {
    const struct trunk *t = m->trunk;
    const struct head_watch *watch = m->pass->heads;
    const struct head_view view = {of->number, at, rows, t->V, t->logits, t->target + at};
    if (watch && !m->gradients) watch->see(watch->context, &view);
}

/* Adds to *of->ce, and to sums->z where `of` has a weight for that. */
static void read_loss(struct model *m, const struct reading *of, struct loss_sums *sums) {
    const struct ops *ops = m->ops;
    struct trunk *t = m->trunk;
    long T = m->T, D = m->config.hidden_size, V = t->V;
    real *dnf = t->t1, *squares = m->training && of->z > 0 ? t->dh : NULL;
    head_norm(m, of->norm, of->x);
    for (long at = 0; at < T; at += t->logit_rows) {
        long rows = T - at < t->logit_rows ? T - at : t->logit_rows;
        head_logits(m, at, rows);
        show_logits(m, of, at, rows);
        block_loss(m, of, rows, t->target + at, t->losses + at, squares ? squares + at : NULL);
        if (!m->gradients) continue;
        ops->gemm('N', 'N', rows, D, V, 1, t->logits, V, t->head.w, D, 0, dnf + at * D, D);
        ops->gemm('T', 'N', V, D, rows, 1, t->logits, V, t->nf + at * D, D, 1, t->head.g, D);
    }
    if (m->tensor->index == 0) ops->add_up(T, t->losses, of->ce); /* every rank has them all */
    if (m->tensor->index == 0 && squares) ops->add_up(T, squares, &sums->z);
    if (!m->gradients) return;
    block_sum(m, dnf);
    read_streams_back(m, of->number >= 0, of->x, of->norm, t->rstdf, own_rows(m, dnf));
}

void head_loss(struct model *m, const real *x, struct loss_sums *sums) {
    const struct loss_options *options = m->pass->options;
    read_loss(m, &(struct reading){-1, x, m->trunk->norm, options->target_weight, options->z_weight, &sums->ce},
              sums);
}

void exit_loss(struct model *m, int layer, struct loss_sums *sums) {
    const struct loss_options *options = m->pass->options;
    const int exit = exit_of(&m->config, layer);
    if (exit < 0 || options->exit_weight[exit] == 0) return;
    read_loss(m, &(struct reading){exit, node_rows(m, layer), m->layer[layer].exit_norm,
                                   options->target_weight * options->exit_weight[exit], 0, &sums->exits[exit]},
              sums);
}
