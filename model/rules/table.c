/* The table of rules between layers, and what it says of a configuration. */
#include "model/delta/gate.h"
#include "model/params/stream.h"
#include "model/rules/rules.h"

#include <stdlib.h>

enum { MAX_ROWS = 16 };

static const struct rule *row[MAX_ROWS] = {&rule_delta};
static int rows = 1;

int rule_register(const struct rule *another) {
    if (rows == MAX_ROWS) abort();
    row[rows] = another;
    return rows++;
}

/* The delta rule is there where it has distances, and first. */
int rules_of(const struct model_config *config, const struct rule **out) {
    int count = 0;
    if (config->delta.num_distances) out[count++] = &rule_delta;
    for (int i = 0; i < config->num_rules && count < MAX_RULES; i++) out[count++] = row[config->rules[i]];
    return count;
}

const struct conflict *rules_conflict(const struct model_config *config, int tensor, int sharing) {
    const struct rule *rule[MAX_RULES];
    const struct conflict *found = NULL;
    int count = rules_of(config, rule);
    for (int r = 0; r < count && !found; r++)
        if (rule[r]->conflict) found = rule[r]->conflict(config, tensor, sharing);
    return found;
}

/* The rule whose sources may travel narrow. */
static const struct rule *narrow(const struct model_config *config) {
    const struct rule *rule[MAX_RULES];
    int count = rules_of(config, rule);
    for (int r = 0; r < count; r++)
        if (rule[r]->widths) return rule[r];
    return NULL;
}

struct route_widths model_route_widths(const struct model_config *config, const struct layout *layout) {
    const struct rule *rule = narrow(config);
    return rule ? rule->widths(config, layout) : (struct route_widths){.node = stream_width(config)};
}

long projected_width(const struct model_config *config, const struct layout *layout) {
    return model_route_widths(config, layout).edge;
}

static const struct rule *of_edge(const struct model *m, int edge) {
    return m->rules->rule[m->edges.edge[edge].rule].row;
}

void model_project(struct model *m, int edge, const real *s, long T, real *projected) {
    double began = rule_clock(m);
    of_edge(m, edge)->project(m, edge, s, T, projected);
    m->rules->seconds += rule_clock(m) - began;
}

void model_unproject(struct model *m, int edge, const real *s, long T, const real *projected_gradient,
                     real *source_gradient) {
    double began = rule_clock(m);
    of_edge(m, edge)->unproject(m, edge, s, T, projected_gradient, source_gradient);
    m->rules->seconds += rule_clock(m) - began;
}
