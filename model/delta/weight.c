/* The weights of contributions: a share (aggregate.h) times the connection's `mix`. Over the tensor axis
 * shares are computed by all ranks alike, or where rows are divided by each rank for its own. Of those
 * computed this rank's are every step-th column of alpha [T, all]. */
#include "model/delta/private.h"

static const struct aggregate *row_of(const struct delta_pass *p) {
    return p->m->delta->aggregate;
}

static real share(const struct delta_pass *p) {
    return row_of(p)->share ? row_of(p)->share(p->all) : 1;
}

/* How many of this rank's connections one operation takes: all of them, where their mixes are neighbours and
 * their columns of alpha every step-th; else one. */
static int at_once(const struct delta_pass *p) {
    const int *among = p->mine->among;
    if (neighbours(p, 0) != p->n) return 1;
    for (int i = 1; i < p->n; i++)
        if (among[i] - among[i - 1] != p->m->delta->part.step) return 1;
    return p->n;
}

/* The column of a connection in what there is of all, x [T, all]; NULL where shares are not computed. */
static real *own_column(const struct delta_pass *p, int i, real *x) {
    return row_of(p)->weigh ? x + p->mine->among[i] : NULL;
}

static void find_shares(const struct delta_pass *p) {
    const struct model *m = p->m;
    struct delta_pass own = on_own_rows(p);
    row_of(p)->weigh(&own, p->c->alpha + own.row0 * p->all);
    if (m->rows_divided) axis_gather_rows(m->tensor, p->c->alpha, m->T, p->all);
}

/* From m->delta->dalpha: of the connections that are elsewhere it has zeros. */
static void shares_backward(const struct delta_pass *p) {
    struct model *m = p->m;
    struct delta_pass own = on_own_rows(p);
    long at = own.row0 * p->all;
    if (m->rows_divided) axis_sum_rows(m->tensor, m->delta->dalpha, m->T, p->all);
    row_of(p)->weigh_back(&own, p->c->alpha + at, m->delta->dalpha + at);
}

void weights_forward(struct delta_pass *p) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    if (row_of(p)->weigh) find_shares(p);
    for (int i = 0, n = at_once(p); i < p->n; i += n) {
        real *weight = n == p->n ? c->weight : c->rms; /* [T, n]: `fill` comes later, and fills rms */
        m->ops->connection_weights(m->T, n, own_column(p, i, c->alpha), p->all, m->delta->part.step, share(p),
                                   own_tensor(p, c->mix, i, 1).w, weight);
        if (n < p->n) m->ops->copy_columns(m->T, n, weight, n, c->weight + i, p->n);
    }
}

void weights_again(const struct delta_pass *p) {
    struct delta_pass own = on_own_rows(p);
    if (row_of(p)->weigh_again) row_of(p)->weigh_again(&own);
}

void weights_backward(struct delta_pass *p) {
    const struct model *m = p->m;
    const struct connections *c = p->c;
    const struct delta_part *part = &m->delta->part;
    bool computed = row_of(p)->weigh;
    if (computed && (part->step > 1 || !p->works)) m->ops->zero(m->T * p->all, m->delta->dalpha);
    for (int i = 0, n = at_once(p); p->works && i < p->n; i += n) {
        struct tensor mix = own_tensor(p, c->mix, i, 1);
        real *dweight = n == p->n ? m->delta->dweight : m->delta->k; /* [T, n] */
        if (n < p->n) m->ops->copy_columns(m->T, n, m->delta->dweight + i, p->n, dweight, n);
        m->ops->connection_weights_back(m->T, n, own_column(p, i, c->alpha), p->all, part->step, share(p),
                                        mix.w, dweight, mix.g, own_column(p, i, m->delta->dalpha));
    }
    if (computed) shares_backward(p);
}
