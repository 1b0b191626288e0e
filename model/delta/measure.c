/* What single connections do, beside the sums over all of them: mean gates and contributions. */
#include "model/delta/private.h"

static struct connection_sums *sums_of(const struct delta_pass *p, int i) {
    return p->each + (own(p, i)->edge - p->m->edges.edge);
}

void measure_gates(const struct delta_pass *p, int i, long W, const real *gate, long ld, real *scratch) {
    const struct model *m = p->m;
    if (!p->each) return;
    if (ld != W) {
        m->ops->copy_columns(m->T, W, gate, ld, scratch, W);
        gate = scratch;
    }
    if (m->counts) {
        m->ops->scale_connections(m->T, 1, W, m->counts, gate, scratch);
        gate = scratch;
    }
    m->ops->add_up(m->T * W, gate, &sums_of(p, i)->gate);
}

void measure_contributions(const struct delta_pass *p) {
    const struct model *m = p->m;
    for (int i = 0; p->each && i < p->n; i++)
        m->ops->add_up(m->T, p->c->rms + i * m->T, &sums_of(p, i)->contribution);
}
