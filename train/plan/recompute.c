#include "train/plan/recompute.h"

#include <stdio.h>
#include <string.h>

static int delta_choice(const struct train_config *train) {
    return train->recompute_delta == RECOMPUTE_SAME ? train->recompute : train->recompute_delta;
}

bool recompute_chosen(const struct train_config *train) {
    return train->recompute == RECOMPUTE_AUTO || delta_choice(train) == RECOMPUTE_AUTO;
}

static int level_of(int choice) {
    return choice == RECOMPUTE_SELECTIVE ? LEVEL_SELECTIVE
           : choice == RECOMPUTE_FULL    ? LEVEL_FULL
                                         : LEVEL_NONE;
}

/* Connections are narrow: beside a layer of which anything is computed again, all of theirs is. */
static int delta_level(const struct train_config *train) {
    int level = level_of(delta_choice(train));
    return train->recompute_delta == RECOMPUTE_SAME && level ? LEVEL_FULL : level;
}

void recompute_fixed(const struct train_config *train, int layers, struct recompute *out) {
    int every = train->recompute_every, delta_every = train->recompute_delta_every;
    if (!delta_every) delta_every = every;
    for (int l = 0; l < layers; l++)
        out[l] = (struct recompute){
            .layer = (unsigned char)(l % every ? LEVEL_NONE : level_of(train->recompute)),
            .delta = (unsigned char)(l % delta_every ? LEVEL_NONE : delta_level(train)),
        };
}

int recompute_rule(double ratio) {
    return ratio < 0.8 ? 4 : ratio < 1.2 ? 2 : 1;
}

void recompute_rule_words(double ratio, char *words, int size) {
    static const char *const which[] = {
        [1] = "every layer", [2] = "every second layer", [4] = "every fourth layer"};
    snprintf(words, (size_t)size,
             "without, memory is %.2f of what is available; a rule by that ratio would take %s, %s", ratio,
             which[recompute_rule(ratio)],
             ratio <= 1 ? "but all fits as it is" : "exact plans take the least costly set that fits");
}

const char *recompute_name(int level) {
    static const char *const names[] = {
        [LEVEL_NONE] = "none", [LEVEL_SELECTIVE] = "selective", [LEVEL_FULL] = "full"};
    return names[level];
}

struct words {
    char *text;
    int at, size;
};

static void put(struct words *w, const char *text) {
    int left = w->size - w->at;
    if (left > 1) w->at += snprintf(w->text + w->at, (size_t)left, "%s", text);
}

static int level_in(const struct recompute *level, bool delta) {
    return delta ? level->delta : level->layer;
}

/* The layers of one level as spans: "0-3, 8". */
static void put_layers(struct words *w, const struct recompute *level, int layers, bool delta, int which) {
    bool any = false;
    int count = 0;
    for (int l = 0; l < layers; l++) count += level_in(&level[l], delta) == which;
    for (int l = 0; l < layers; l++) {
        if (level_in(&level[l], delta) != which) continue;
        int first = l;
        while (l + 1 < layers && level_in(&level[l + 1], delta) == which) l++;
        char span[40];
        snprintf(span, sizeof span, l > first ? "%d-%d" : "%d", first, l);
        if (!any)
            put(w, w->at ? ", " : ""), put(w, delta ? "connections of layer" : "layer"),
                put(w, count > 1 ? "s " : " ");
        if (any) put(w, ", ");
        put(w, span);
        any = true;
    }
    if (any) put(w, " "), put(w, recompute_name(which));
}

void recompute_words(const struct recompute *level, int layers, char *words, int size) {
    struct words w = {.text = words, .size = size};
    for (int delta = 0; delta < 2; delta++)
        for (int which = LEVEL_FULL; which > LEVEL_NONE; which--) put_layers(&w, level, layers, delta, which);
    if (!w.at) put(&w, "nothing");
}
