/* The lists of rules between layers that tests ask for. */
#include "rows.h"

#include <stdlib.h>

static int constant, heads; /* 0 is gdn's own */

/* One letter's entry; false for another letter. */
static bool entry_of(char letter, struct rule_config *out) {
    switch (letter) {
    case 'b':
        *out = (struct rule_config){constant, PLACE_BEFORE, {-1, 1}, 2, 0.1};
        return true;
    case 'a':
        *out = (struct rule_config){constant, PLACE_AFTER, {0}, 1, 0.05};
        return true;
    case 'q':
        *out = (struct rule_config){heads, PLACE_QUERY, {-1, 1}, 2, 0.3};
        return true;
    case 'k':
        *out = (struct rule_config){heads, PLACE_KEY, {0}, 1, 0.4};
        return true;
    case 'v':
        *out = (struct rule_config){heads, PLACE_VALUE, {-1, 0}, 2, 0.5};
        return true;
    default:
        return false;
    }
}

void choose_rules(struct model_config *model) {
    const char *letter = getenv("GDN_TEST_RULES");
    for (; letter && *letter && model->num_rules < MAX_RULES - 1; letter++)
        if (entry_of(*letter, &model->rules[model->num_rules])) model->num_rules++;
}

void rows_of_rules(void) {
    if (!constant) constant = register_rule_constant(), heads = register_rule_heads();
}
