/* What rows of the table of rules are offered. */
#include "model/rule/rule.h"

#include <time.h>

real *source_gradient_of(const struct model *m, int node) {
    real *given = m->pass->source_gradient ? m->pass->source_gradient[1 + node] : NULL;
    return given || node < m->span.first - 1 ? given : m->rules->source_gradient[1 + node];
}

int rule_active(const struct model *m, const struct rule_layer *x) {
    int n = 0;
    for (int i = 0; i < x->n; i++) n += rule_edge_active(m, x, i);
    return n;
}

double rule_clock(const struct model *m) {
    struct timespec now;
    if (!m->ops->device->host || m->planned) return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
