#include "train/plan/recompute.h"

#include <stdio.h>
#include <string.h>

int recompute_rule(double ratio) {
    return ratio < 0.8 ? 4 : ratio < 1.2 ? 2 : 1;
}

void recompute_rule_text(double ratio, char *text, int size) {
    static const char *const which[] = {
        [1] = "every layer", [2] = "every second layer", [4] = "every fourth layer"};
    snprintf(text, (size_t)size,
             "without, memory is %.2f of what is available; a rule by that ratio would take %s, %s", ratio,
             which[recompute_rule(ratio)],
             ratio <= 1 ? "but all fits as it is" : "exact plans take the least costly set that fits");
}

const char *recompute_name(int policy) {
    static const char *const names[] = {
        [POLICY_NONE] = "none", [POLICY_SELECTIVE] = "selective", [POLICY_FULL] = "full"};
    return names[policy];
}

struct text {
    char *text;
    int at, size;
};

static void put(struct text *w, const char *text) {
    int left = w->size - w->at;
    if (left > 1) w->at += snprintf(w->text + w->at, (size_t)left, "%s", text);
}

static int policy_in(const struct recompute *policy, bool delta) {
    return delta ? policy->delta : policy->layer;
}

/* The layers of one policy as spans: "0-3, 8". */
static void put_layers(struct text *w, const struct recompute *policy, int layers, bool delta, int which) {
    bool any = false;
    int count = 0;
    for (int l = 0; l < layers; l++) count += policy_in(&policy[l], delta) == which;
    for (int l = 0; l < layers; l++) {
        if (policy_in(&policy[l], delta) != which) continue;
        int first = l;
        while (l + 1 < layers && policy_in(&policy[l + 1], delta) == which) l++;
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

void recompute_text(const struct recompute *policy, int layers, char *text, int size) {
    struct text w = {.text = text, .size = size};
    for (int delta = 0; delta < 2; delta++)
        for (int which = POLICY_FULL; which > POLICY_NONE; which--)
            put_layers(&w, policy, layers, delta, which);
    if (!w.at) put(&w, "nothing");
}
