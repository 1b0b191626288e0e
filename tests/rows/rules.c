/* The lists of rules between layers that C tests ask for; scripts have model.rules. */
#include "rows.h"

#include "kernels/base/append.h"
#include "train/config/config.h"

#include <stdlib.h>
#include <string.h>

/* What a letter stands for. */
static const struct {
    char letter;
    const char *entry;
} entries[] = {
    {'b', "{kind: constant, place: before, sources: [embedding, 1]}"},
    {'a', "{kind: constant, place: after, sources: [0]}"},
    {'q', "{kind: heads, place: query, sources: [embedding, 1]}"},
    {'k', "{kind: heads, place: key, sources: [0]}"},
    {'v', "{kind: heads, place: value, sources: [embedding, 0]}"},
    /* gdn's own */
    {'l', "{kind: lane}"},
    {'x', "{kind: mix, distances: [1, 2], sources: [embedding, 0]}"},
    {'X', "{kind: mix, place: after, distances: [1, 3], sources: []}"},
    {'d', "{kind: dense, dilation: 2}"},
    {'m', "{kind: dense, form: dynamic, period: 2, hidden: 5}"},
    {'p', "{kind: depth_attention}"},
    {'P', "{kind: depth_attention, form: published, block: 2, period: 2}"},
    {'V', "{kind: value}"},
};

static const char *entry_of(char letter) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (entries[i].letter == letter) return entries[i].entry;
    abort();
}

void choose_rules(struct model_config *model) {
    const char *letters = getenv("GDN_TEST_RULES");
    char text[4096];
    struct config read;
    if (!letters || !*letters) return;
    size_t used = text_append(text, sizeof text, 0, "{model: {rules: [");
    for (const char *at = letters; *at; at++)
        used = text_append(text, sizeof text, used, "%s%s", at > letters ? ", " : "", entry_of(*at));
    text_append(text, sizeof text, used, "]}}");
    if (config_parse(text, "rules", NULL, 0, &read)) abort();
    memcpy(model->rules, read.model.rules, sizeof model->rules);
    model->num_rules = read.model.num_rules;
    config_free(&read);
}

void rows_of_rules(void) {
    static bool there;
    if (there) return;
    there = true;
    register_rule_constant();
    register_rule_heads();
}
