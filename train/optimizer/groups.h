/* Parameter groups (train.groups): what distinguishes the treatment of some tensors from that of the others.
 * Every tensor belongs to the first group whose pattern matches its name, or to none. What its group does not
 * say is as its leaf has it (model/params/leaf.h), and else the configuration's, with weight decay for
 * tensors of two dimensions (row.decay). */
#ifndef GDN_OPTIMIZER_GROUPS_H
#define GDN_OPTIMIZER_GROUPS_H

#include <stdio.h>

#include "train/optimizer/rules.h"

/* Notes in a table's rows how the configuration's optimiser treats them. Before shards are cut (shard.h) or
 * anything is saved. Not collective. */
void optimizer_treat(const struct train_config *train, struct table *table);

/* Of the tensors of a group: how many, and the greatest of their settings. */
struct group_use {
    int64_t tensors, parameters;
    double lr_scale, weight_decay, beta1, beta2;
};

/* The same of each of the configuration's groups; behind them of the tensors in none whose leaves have
 * settings of their own. */
struct group_uses {
    struct group_use use[GROUPS_MAX + 1];
};

/* Of a table of the whole model that has been treated. Not collective. GDN_INPUT for a group that names no
 * tensor of the model, or betas where none of its tensors has such. */
int groups_uses(const struct train_config *train, const struct table *table, struct group_uses *out);

/* Leaves out groups that name no tensor of the table, as of a model of which a part has gone. */
void groups_keep_named(struct train_config *train, const struct table *table);

/* A line for each of them, nothing where there are none; the same as a member of a JSON object: ,"groups":[…]
 */
void groups_print(const struct train_config *train, const struct group_uses *uses, FILE *out);
void groups_json(const struct train_config *train, const struct group_uses *uses, FILE *out);

#endif
