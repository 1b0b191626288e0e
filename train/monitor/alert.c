#include "train/monitor/alert.h"

#include <math.h>
#include <stdio.h>

/* Gated Delta Networks, part 3: production monitoring. */
static const struct {
    bool relative; /* `bound` is a factor of what is usual */
    bool above;    /* the condition: the value lies above; else below */
    double bound;
} rules[ALERT_RULES] = {
    [ALERT_LATENCY] = {.relative = true, .above = true, .bound = 1.20},
    [ALERT_THROUGHPUT] = {.relative = true, .above = false, .bound = 0.85},
    [ALERT_SHARE] = {.relative = false, .above = true, .bound = 0.3},
    [ALERT_USE] = {.relative = false, .above = false, .bound = 0.3},
};

const char *const alert_rule_name[ALERT_RULES] = {
    [ALERT_LATENCY] = "latency",
    [ALERT_THROUGHPUT] = "throughput",
    [ALERT_SHARE] = "connection_share",
    [ALERT_USE] = "connection_use",
};

static void describe(struct alert *alert) {
    double change = 100 * fabs(alert->value / alert->baseline - 1);
    size_t size = sizeof alert->text;
    switch (alert->rule) {
    case ALERT_LATENCY:
        snprintf(
            alert->text, size,
            "one step in 20 has taken %.3g s or more for a while, %.0f %% more than before: look for other "
            "work on the machines (top, nvidia-smi), a busy disk or network, and events slow_rank; gdn "
            "check measures the ranks",
            alert->value, change);
        return;
    case ALERT_THROUGHPUT:
        snprintf(alert->text, size,
                 "%.4g tokens/s for a while, %.0f %% fewer than before: look for other work on the machines "
                 "(top, nvidia-smi), for heat, and events slow_rank; gdn check measures the ranks",
                 alert->value, change);
        return;
    case ALERT_SHARE:
        snprintf(alert->text, size,
                 "%.0f %% of a step's time is spent in rules between layers: fewer or narrower delta connections "
                 "(model.delta.distances, hidden), fewer model.rules or sources of these (period, dilation) "
                 "cost less; gdn bench measures them",
                 100 * alert->value);
        return;
    default:
        snprintf(alert->text, size,
                 "a few delta connections carry most: those in use amount to %.0f %% of the active ones; gdn "
                 "report shows which, and model.delta.distances can do without the others",
                 100 * alert->value);
        return;
    }
}

/* NAN while there is too little. */
static double usual(const struct alert_state *state) {
    double sum = 0;
    for (int i = 0; i < ALERT_HISTORY; i++) sum += state->usual[i];
    return state->count < ALERT_HISTORY ? NAN : sum / ALERT_HISTORY;
}

static void remember(struct alert_state *state, double value) {
    state->usual[state->next] = value;
    state->next = (state->next + 1) % ALERT_HISTORY;
    if (state->count < ALERT_HISTORY) state->count++;
}

/* Whether what the last samples say has lasted. */
static bool lasts(const struct alert_state *state, const struct alert_look *look) {
    return state->looks >= ALERT_LOOKS && look->step - state->since >= ALERT_STEPS &&
           look->seconds - state->began >= ALERT_SECONDS;
}

static bool condition(enum alert_rule rule, double value, double baseline) {
    double limit = rules[rule].relative ? rules[rule].bound * baseline : rules[rule].bound;
    return rules[rule].above ? value > limit : value < limit; /* false of NAN */
}

/* Takes a sample for one rule; whether it raises an alert. */
static bool look_at(struct alert_state *state, enum alert_rule rule, const struct alert_look *look) {
    const bool relative = rules[rule].relative;
    const double value = look->value[rule];
    if (!state->raised && !state->looks) state->baseline = relative ? usual(state) : rules[rule].bound;
    bool holds = condition(rule, value, state->baseline);
    if (state->raised || !holds) remember(state, value);
    bool ended =
        state->raised && holds && relative && ++state->held >= ALERT_HISTORY; /* the usual pace now */
    if (ended) state->raised = false;
    if (ended || holds == state->raised) {
        state->looks = 0;
        return false;
    }
    if (!state->looks++) state->since = look->step, state->began = look->seconds;
    if (!lasts(state, look)) return false;
    state->raised = holds;
    state->looks = state->held = 0;
    return holds;
}

int alerts_look(struct alerts *alerts, const struct alert_look *look, struct alert *out) {
    int count = 0;
    for (int r = 0; r < ALERT_RULES; r++) {
        struct alert_state *state = &alerts->rule[r];
        if (!look_at(state, (enum alert_rule)r, look)) continue;
        out[count] = (struct alert){(enum alert_rule)r, look->value[r], state->baseline, ""};
        describe(&out[count++]);
    }
    return count;
}
