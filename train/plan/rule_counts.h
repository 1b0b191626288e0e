/* What the rules between layers of a model have, for a run's first lines and for plans. */
#ifndef GDN_RULE_COUNTS_H
#define GDN_RULE_COUNTS_H

#include <stdint.h>
#include <stdio.h>

#include "dist/layout/table.h"
#include "model/params/config.h"

struct rule_count {
    const struct rule_config *settings; /* the configuration's; NULL: the delta connections */
    int connections;
    int64_t parameters;
};

struct rule_counts {
    int count;
    struct rule_count rule[MAX_RULES];
};

/* Of a configuration, which outlives them, and its whole parameter table. Not collective. GDN_INTERNAL
 * without memory. */
int rule_counts_of(const struct model_config *model, const struct table *table, struct rule_counts *out);

/* Ends the line "model …: N parameters" with those of delta connections, and has a line for each other rule.
 */
void rule_counts_print(const struct rule_counts *counts, FILE *out);
/* The same of other rules as a member of a JSON object, ",\"rules\":[…]"; nothing where there are none. */
void rule_counts_write(const struct rule_counts *counts, FILE *out);

#endif
