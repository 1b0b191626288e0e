/* Which of a layer's connections a pass computes: any set of them (dist/layout/edge.h). */
#include "model/delta/private.h"

void find_active(struct delta_pass *p) {
    struct model *m = p->m;
    const struct delta_part *part = &m->delta->part;
    struct own_active *own = &m->delta->own;
    p->all = p->n = 0;
    p->mine = own;
    for (int i = 0; i < p->x->n; i++) {
        if (!rule_edge_active(m, p->x, i)) continue;
        if (i % part->step == part->first) {
            own->among[p->n] = p->all;
            own->place[p->n++] = i / part->step;
        }
        p->source[p->all++].edge = &p->x->edge[i];
    }
}

int neighbours(const struct delta_pass *p, int i) {
    const int *place = p->mine->place + i;
    int n = 1;
    while (i + n < p->n && place[n] == place[0] + n) n++;
    return n;
}

const real *active_stack(const struct delta_pass *p, const real *stack, long size, real *room) {
    const int *place = p->mine->place;
    if (neighbours(p, 0) == p->n) return stack + place[0] * size;
    for (int i = 0, n; i < p->n; i += n) {
        n = neighbours(p, i);
        p->m->ops->copy(n * size, stack + place[i] * size, room + i * size);
    }
    return room;
}

void add_bias_gradient(const struct delta_pass *p, const real *dx, long size, real *stack) {
    long wide = p->n * size;
    for (int i = 0, n; i < p->n; i += n) {
        n = neighbours(p, i);
        p->m->ops->add_column_sums(p->rows, n * size, dx + i * size, wide, stack + p->mine->place[i] * size);
    }
}
