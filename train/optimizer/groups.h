/* Parameter groups: what distinguishes the treatment of some tensors from that of the others. Every tensor
 * belongs to the first group whose pattern matches its name, or to the default group: the configuration's
 * settings, with weight decay for tensors of two dimensions (row.decay). */
#ifndef GDN_OPTIMIZER_GROUPS_H
#define GDN_OPTIMIZER_GROUPS_H

#include "train/optimizer/rules.h"

struct parameter_group {
    const char *match; /* names of tensors; * stands for any characters: "layers.*.delta.*.mix" */
    double lr_scale;   /* times the schedule's learning rate */
    double weight_decay, beta1, beta2; /* NAN: as in the default group */
};

/* Notes in a table's rows how `rule` treats them, with `count` groups beside the default one. Before shards
 * are cut (shard.h) or anything is saved. Not collective. */
void groups_assign(const struct optimizer_rule *rule, const struct train_config *train,
                   const struct parameter_group *group, int count, struct table *table);

/* The same for the configuration's optimiser and groups. */
void optimizer_treat(const struct train_config *train, struct table *table);

#endif
