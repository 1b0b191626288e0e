#include "train/plan/rule_counts.h"

#include "kernels/base/status.h"
#include "model/params/edges.h"
#include "model/rules/rules.h"
#include "train/config/config.h"
#include "train/plan/text.h"

int rule_counts_of(const struct model_config *model, const struct table *table, struct rule_counts *out) {
    struct rule_entry entry[MAX_RULES];
    struct edges edges;
    *out = (struct rule_counts){.count = rules_of(model, entry)};
    TRY(edges_create(model, &edges));
    for (int r = 0; r < out->count; r++)
        if (entry[r].row != rules_row(0)) out->rule[r].settings = entry[r].settings;
    for (int e = 0; e < edges.count; e++) out->rule[edges.edge[e].rule].connections++;
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (row->rule >= 0) out->rule[row->rule].parameters += row->count;
    }
    edges_free(&edges);
    return GDN_OK;
}

void rule_counts_print(const struct rule_counts *counts, FILE *out) {
    char text[RULE_TEXT], count[32], connections[32];
    bool first = true;
    for (int r = 0; r < counts->count; r++) {
        const struct rule_count *rule = &counts->rule[r];
        if (!rule->settings)
            fprintf(out, ", %s of them for %d delta connections", plan_grouped(rule->parameters, count),
                    rule->connections);
    }
    fputc('\n', out);
    for (int r = 0; r < counts->count; r++) {
        const struct rule_count *rule = &counts->rule[r];
        if (!rule->settings) continue;
        fprintf(out, "%-10s%s; %s connection%s, %s parameters\n", first ? "rules" : "",
                config_rule_text(rule->settings, text), plan_grouped(rule->connections, connections),
                rule->connections == 1 ? "" : "s", plan_grouped(rule->parameters, count));
        first = false;
    }
}

void rule_counts_write(const struct rule_counts *counts, FILE *out) {
    char text[RULE_TEXT];
    bool first = true;
    for (int r = 0; r < counts->count; r++) {
        const struct rule_count *rule = &counts->rule[r];
        if (!rule->settings) continue;
        fprintf(out, "%s{\"rule\":\"%s\",\"connections\":%d,\"parameters\":%lld}",
                first ? ",\"rules\":[" : ",", config_rule_text(rule->settings, text), rule->connections,
                (long long)rule->parameters);
        first = false;
    }
    if (!first) fputc(']', out);
}
