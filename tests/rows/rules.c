/* The lists of rules between layers that C tests ask for; scripts have model.rules. */
#include "rows.h"

#include "model/rules/rules.h"

#include <stdlib.h>

static int constant, heads; /* 0 is gdn's own */

/* The number of one of gdn's rows. */
static int number_of(const struct rule *row) {
    int number = 0;
    while (rules_row(number) != row) number++;
    return number;
}

/* One letter's entry; false for another letter. */
static bool entry_of(char letter, struct rule_config *out) {
    switch (letter) {
    case 'b':
        *out = (struct rule_config){
            .row = constant, .place = PLACE_BEFORE, .sources = {-1, 1}, .num_sources = 2};
        return true;
    case 'a':
        *out = (struct rule_config){.row = constant, .place = PLACE_AFTER, .sources = {0}, .num_sources = 1};
        return true;
    case 'q':
        *out = (struct rule_config){.row = heads, .place = PLACE_QUERY, .sources = {-1, 1}, .num_sources = 2};
        return true;
    case 'k':
        *out = (struct rule_config){.row = heads, .place = PLACE_KEY, .sources = {0}, .num_sources = 1};
        return true;
    case 'v':
        *out = (struct rule_config){.row = heads, .place = PLACE_VALUE, .sources = {-1, 0}, .num_sources = 2};
        return true;
    case 'd':
        *out = (struct rule_config){.row = number_of(&rule_dense), .dilation = 2, .period = 1, .lr_scale = 1};
        return true;
    case 'm':
        *out = (struct rule_config){
            .row = number_of(&rule_dense), .form = 1, .dilation = 1, .period = 2, .hidden = 5, .lr_scale = 1};
        return true;
    case 'V':
        *out = rule_value.defaults;
        out->row = number_of(&rule_value);
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
