#include "train/optimizer/groups.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/base/status.h"
#include "train/config/nearest.h"

static struct treatment by_default(const struct train_config *train, const struct row *row) {
    double decay = row->own_weight_decay > 0 ? row->own_weight_decay : train->weight_decay;
    return (struct treatment){
        .group = -1,
        .lr_scale = row->own_lr_scale > 0 ? row->own_lr_scale : 1,
        .weight_decay = row->decay ? decay : 0,
        .beta1 = train->beta1,
        .beta2 = train->beta2,
    };
}

static void replace(double *value, double other) {
    if (!isnan(other)) *value = other;
}

static void join(const struct parameter_group *group, struct treatment *out) {
    replace(&out->lr_scale, group->lr_scale);
    replace(&out->weight_decay, group->weight_decay);
    replace(&out->beta1, group->beta1);
    replace(&out->beta2, group->beta2);
}

static bool matches(const struct parameter_group *group, const struct row *row) {
    return !fnmatch(group->match, row->name, 0);
}

void optimizer_treat(const struct train_config *train, struct table *table) {
    const struct optimizer_rule *rule = optimizer_rule_of(train);
    for (int i = 0; i < table->rows; i++) {
        struct row *row = &table->row[i];
        int g = 0;
        row->treatment = by_default(train, row);
        row->treatment.moments = rule->moments(row);
        if (row->treatment.moments->count < 1) abort(); /* steps are saved with moments (rules.h) */
        row->treatment.whole = rule->whole ? rule->whole(train, row) : WHOLE_NONE;
        while (g < train->num_groups && !matches(&train->groups[g], row)) g++;
        if (g == train->num_groups) continue;
        row->treatment.group = g;
        join(&train->groups[g], &row->treatment);
    }
}

/* --------------------------------------------------------------------------------- what they come to */

/* The tensor's name that is likest to a pattern. Of the first layers alone: others are called alike. */
static const char *nearest_tensor(const char *pattern, const struct table *table) {
    enum { LAYERS = 16 };
    const char *nearest = table->row[0].name;
    for (int i = 1; i < table->rows; i++) {
        const char *name = table->row[i].name;
        if (table->row[i].layer >= LAYERS && table->row[i].layer < table->row[table->rows - 1].layer)
            continue;
        if (edit_distance(pattern, name) < edit_distance(pattern, nearest)) nearest = name;
    }
    return nearest;
}

/* Whether the group has tensors, and its betas are some tensor's. */
static int validate(const struct train_config *train, int g, const struct table *table) {
    const struct parameter_group *group = &train->groups[g];
    bool any = false, betas = isnan(group->beta1) && isnan(group->beta2);
    for (int i = 0; i < table->rows; i++) {
        if (!matches(group, &table->row[i])) continue;
        any = true;
        betas |= !table->row[i].treatment.whole;
    }
    if (!any)
        return gdn_fail(GDN_INPUT,
                        "train.groups[%d]: no tensor of the model is called '%s'; the likest name is '%s' (* "
                        "stands for any characters)",
                        g, group->match, nearest_tensor(group->match, table));
    if (!betas)
        return gdn_fail(GDN_INPUT,
                        "train.groups[%d]: beta1 and beta2 are AdamW's, but all tensors called '%s' are "
                        "updated as whole matrices by %s; leave them out",
                        g, group->match, optimizer_rule_of(train)->name);
    return 0;
}

static bool names_any(const struct parameter_group *group, const struct table *table) {
    int i = 0;
    while (i < table->rows && !matches(group, &table->row[i])) i++;
    return i < table->rows;
}

void groups_keep_named(struct train_config *train, const struct table *table) {
    int kept = 0;
    for (int g = 0; g < train->num_groups; g++)
        if (names_any(&train->groups[g], table)) train->groups[kept++] = train->groups[g];
    train->num_groups = kept;
}

static void raise(double *greatest, double value) {
    if (value > *greatest) *greatest = value;
}

int groups_uses(const struct train_config *train, const struct table *table, struct group_uses *out) {
    *out = (struct group_uses){0};
    for (int g = 0; g < train->num_groups; g++) TRY(validate(train, g, table));
    for (int i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        const struct treatment *t = &row->treatment;
        if (t->group < 0 && row->own_lr_scale == 0 && row->own_weight_decay == 0) continue;
        struct group_use *use = &out->use[t->group < 0 ? train->num_groups : t->group];
        use->tensors++;
        use->parameters += row->count;
        raise(&use->lr_scale, t->lr_scale);
        raise(&use->weight_decay, t->weight_decay);
        raise(&use->beta1, t->beta1);
        raise(&use->beta2, t->beta2);
    }
    return 0;
}

/* The group's pattern; NULL behind the last group. */
static const char *match_of(const struct train_config *train, int g) {
    return g < train->num_groups ? train->groups[g].match : NULL;
}

void groups_print(const struct train_config *train, const struct group_uses *uses, FILE *out) {
    for (int g = 0; g <= train->num_groups; g++) {
        const struct group_use *use = &uses->use[g];
        const char *match = match_of(train, g);
        if (!use->tensors && match)
            fprintf(out, "note      train.groups[%d]: '%s' of no effect: groups before it have its tensors\n",
                    g, match);
        if (!use->tensors) continue;
        fprintf(out, "group     %s: %lld tensor%s, %lld parameters; lr %.3g, decay %.3g, betas %g %g\n",
                match ? match : "(of a kind with settings of its own)", (long long)use->tensors,
                use->tensors > 1 ? "s" : "", (long long)use->parameters, train->lr * use->lr_scale,
                use->weight_decay, use->beta1, use->beta2);
    }
}

void groups_json(const struct train_config *train, const struct group_uses *uses, FILE *out) {
    bool first = true;
    for (int g = 0; g <= train->num_groups; g++) {
        const struct group_use *use = &uses->use[g];
        const char *match = match_of(train, g);
        if (!use->tensors && !match) continue;
        /* Patterns have no character that JSON would want escaped (train/config/group.c). */
        fputs(first ? ",\"groups\":[{\"match\":" : ",{\"match\":", out);
        if (match)
            fprintf(out, "\"%s\"", match);
        else
            fputs("null", out);
        fprintf(out,
                ",\"tensors\":%lld,\"parameters\":%lld,\"lr\":%.17g,\"weight_decay\":%.17g,\"beta1\":%.17g,"
                "\"beta2\":%.17g}",
                (long long)use->tensors, (long long)use->parameters, train->lr * use->lr_scale,
                use->weight_decay, use->beta1, use->beta2);
        first = false;
    }
    if (!first) fputc(']', out);
}
