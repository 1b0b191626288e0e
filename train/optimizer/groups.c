#include "train/optimizer/groups.h"

#include <fnmatch.h>
#include <math.h>

static struct treatment by_default(const struct train_config *train, const struct row *row) {
    return (struct treatment){
        .lr_scale = 1,
        .weight_decay = row->decay ? train->weight_decay : 0,
        .beta1 = train->beta1,
        .beta2 = train->beta2,
    };
}

static void replace(double *value, double other) {
    if (!isnan(other)) *value = other;
}

static void join(const struct parameter_group *group, struct treatment *out) {
    out->lr_scale = group->lr_scale;
    replace(&out->weight_decay, group->weight_decay);
    replace(&out->beta1, group->beta1);
    replace(&out->beta2, group->beta2);
}

void groups_assign(const struct optimizer_rule *rule, const struct train_config *train,
                   const struct parameter_group *group, int count, struct table *table) {
    for (int i = 0; i < table->rows; i++) {
        struct row *row = &table->row[i];
        int g = 0;
        row->treatment = by_default(train, row);
        row->treatment.moments = rule->moments(row);
        row->treatment.whole = rule->whole ? rule->whole(train, row) : WHOLE_NONE;
        while (g < count && fnmatch(group[g].match, row->name, 0)) g++;
        if (g < count) join(&group[g], &row->treatment);
    }
}

void optimizer_treat(const struct train_config *train, struct table *table) {
    groups_assign(optimizer_rule_of(train), train, NULL, 0, table);
}
