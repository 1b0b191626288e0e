/* Dropout of gates (model.md, 3), each connection's by a mask of its own. */
#include "model/base/dropout.h"
#include "model/delta/private.h"

bool drops_gates(const struct delta_pass *p) {
    return drops(p->m, p->m->config.dropout.gate);
}

void drop_gates(const struct delta_pass *p, int i, long W, long column, const real *x, long ld, real *y) {
    const struct model *m = p->m;
    struct mask mask =
        dropout_mask(m, DROP_GATE, p->x->layer, own(p, i)->edge->distance, m->config.dropout.gate);
    mask.column = (uint64_t)column;
    dropout_rows(m, &mask, 0, m->T, W, x, ld, y, ld);
}
