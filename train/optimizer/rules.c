#include "train/optimizer/rules.h"

#include <stdlib.h>

enum { RULES = 8 }; /* at most */

/* Those of train.optimizer, in its order, and those added. */
static const struct optimizer_rule *rule[RULES] = {
    [OPTIMIZER_ADAMW] = &optimizer_adamw,
    [OPTIMIZER_MUON] = &optimizer_muon,
};
static int rules = OPTIMIZERS;

const struct optimizer_rule *optimizer_rule_of(const struct train_config *train) {
    return rule[rules > OPTIMIZERS ? rules - 1 : train->optimizer];
}

int optimizer_register(const struct optimizer_rule *another) {
    if (rules == RULES) abort();
    rule[rules] = another;
    return rules++;
}
