/* The edge table of a configuration. */
#include "kernels/base/status.h"
#include "model/rules/rules.h"

#include <stdlib.h>

/* One rule's edges into a layer; returns how many. */
static int add(const struct model_config *config, const struct rule_entry *rule, int number, bool whole,
               int layer, struct edge *list) {
    int n = rule->row->edges(config, rule->settings, layer, list);
    for (int i = 0; i < n; i++) {
        list[i].target = layer;
        list[i].rule = number;
        list[i].measured = rule->row->measured;
        list[i].whole = whole;
    }
    return n;
}

static edges_change *change;

void edges_register(edges_change *registered) {
    change = registered;
}

int edges_create(const struct model_config *config, struct edges *out) {
    struct rule_entry rule[MAX_RULES];
    int rules = rules_of(config, rule), narrow = rules_narrow(rule, rules), count = 0;
    long L = config->num_layers, room = rules * (L * (L + 1) / 2);
    struct edge *list = malloc((size_t)(room + 1) * sizeof *list);
    if (!list) return gdn_fail(GDN_INTERNAL, "out of memory for the edge table of %ld layers", L);
    for (int l = 0; l < config->num_layers; l++)
        for (int r = 0; r < rules; r++) count += add(config, &rule[r], r, r != narrow, l, list + count);
    if (change) count = change(config, list, count);
    int status = edges_of(list, count, config->num_layers, out);
    free(list);
    return status;
}
