/* The lists of rules between layers that C tests ask for; scripts have model.rules. */
#include "rows.h"

#include "kernels/base/append.h"
#include "model/params/stream.h"
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
    {'g', "{kind: mix, form: gated, distances: [1, 3], sources: [embedding, 0], from: both, groups: 2, "
          "hidden: 5}"},
    {'G', "{kind: mix, form: gated, place: after, from: added, distances: [1, 4], period: 2, hidden: 3}"},
    {'y', "{kind: mix, from: added, sources: [embedding, 1], distances: [2], layers: [2, 3, 5]}"},
    {'i', "{kind: mix, place: value, distances: [1, 3]}"},
    {'I', "{kind: mix, form: gated, place: value, from: both, distances: [1, 2], groups: 2, hidden: 3}"},
    {'Q', "{kind: mix, form: gated, place: query, from: added, distances: [1], sources: [0], hidden: 4}"},
    {'d', "{kind: dense, dilation: 2}"},
    {'m', "{kind: dense, form: dynamic, period: 2, hidden: 5}"},
    {'D', "{kind: dense, channels: [query, value], dilation: 2}"},
    {'M', "{kind: dense, form: dynamic, channels: [query, key, value], hidden: 3}"},
    {'z', "{kind: dense, place: head, dilation: 2}"},
    {'Z', "{kind: dense, place: head, form: dynamic, hidden: 3}"},
    {'p', "{kind: depth_attention}"},
    {'P', "{kind: depth_attention, form: published, block: 2, period: 2}"},
    {'A', "{kind: depth_attention, place: value, block: 2}"},
    {'V', "{kind: value}"},
    {'R', "{kind: value, form: residual}"},
    {'E', "{kind: value, form: embedding, period: 2}"},
    /* alone, with several streams */
    {'h', "{kind: hyper, streams: 2}"},
    {'H', "{kind: hyper, form: dynamic, streams: 4, mixing: doubly_stochastic}"},
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
    size_t used = text_append(text, sizeof text, 0, "{model: {delta: {distances: []}, rules: [");
    for (const char *at = letters; *at; at++)
        used = text_append(text, sizeof text, used, "%s%s", at > letters ? ", " : "", entry_of(*at));
    text_append(text, sizeof text, used, "]}}");
    if (config_parse(text, "rules", NULL, 0, &read)) abort();
    memcpy(model->rules, read.model.rules, sizeof model->rules);
    model->num_rules = read.model.num_rules;
    config_free(&read);
    if (stream_count(model) > 1) model->delta.num_distances = 0; /* which are refused beside it */
}

void rows_of_rules(void) {
    static bool there;
    if (there) return;
    there = true;
    register_rule_constant();
    register_rule_heads();
}
