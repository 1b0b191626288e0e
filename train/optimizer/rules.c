#include "train/optimizer/rules.h"

#include <stdlib.h>

enum { RULES = 8 }; /* at most */

static const struct optimizer_rule *rule[RULES] = {&optimizer_adamw};
static int rules = 1;

/* As long as no key names one. */
const struct optimizer_rule *optimizer_rule_of(const struct train_config *train) {
    (void)train;
    return rule[rules - 1];
}

void optimizer_register(const struct optimizer_rule *added) {
    if (rules == RULES) abort();
    rule[rules++] = added;
}
