#include "train/monitor_alert.h"

#include <math.h>
#include <stdio.h>

/* Bounds of the rules (Gated Delta Networks, part 3: production monitoring). */
#define LATENCY_ABOVE 0.20
#define THROUGHPUT_BELOW 0.15
#define SHARE_ABOVE 0.3
#define USE_BELOW 0.3

const char *const alert_rule_name[ALERT_RULES] = {
    [ALERT_LATENCY] = "latency",
    [ALERT_THROUGHPUT] = "throughput",
    [ALERT_SHARE] = "connection_share",
    [ALERT_USE] = "connection_use",
};

/* NAN while there is too little. */
static double mean_of(const struct alerts *alerts, const double *history) {
    double sum = 0;
    for (int i = 0; i < ALERT_HISTORY; i++) sum += history[i];
    return alerts->count < ALERT_HISTORY ? NAN : sum / ALERT_HISTORY;
}

static void remember(struct alerts *alerts, const struct alert_look *look) {
    alerts->p95[alerts->next] = look->p95;
    alerts->rate[alerts->next] = look->tokens_per_second;
    alerts->next = (alerts->next + 1) % ALERT_HISTORY;
    if (alerts->count < ALERT_HISTORY) alerts->count++;
}

static void describe(struct alert *alert) {
    double change = 100 * fabs(alert->value / alert->baseline - 1);
    size_t size = sizeof alert->words;
    switch (alert->rule) {
    case ALERT_LATENCY:
        snprintf(alert->words, size, "95 %% of the last steps took up to %.3g s, %.0f %% more than before",
                 alert->value, change);
        return;
    case ALERT_THROUGHPUT:
        snprintf(alert->words, size, "%.4g tokens/s, %.0f %% fewer than before", alert->value, change);
        return;
    case ALERT_SHARE:
        snprintf(alert->words, size, "%.0f %% of a step's time is spent in delta connections",
                 100 * alert->value);
        return;
    default:
        snprintf(alert->words, size,
                 "a few delta connections carry most: those in use amount to %.0f %% of the active ones",
                 100 * alert->value);
        return;
    }
}

int alerts_look(struct alerts *alerts, const struct alert_look *look, struct alert *out) {
    const double p95 = mean_of(alerts, alerts->p95), rate = mean_of(alerts, alerts->rate);
    const struct {
        double value, baseline;
        bool holds; /* false of NAN */
    } rule[ALERT_RULES] = {
        [ALERT_LATENCY] = {look->p95, p95, look->p95 > (1 + LATENCY_ABOVE) * p95},
        [ALERT_THROUGHPUT] = {look->tokens_per_second, rate,
                              look->tokens_per_second < (1 - THROUGHPUT_BELOW) * rate},
        [ALERT_SHARE] = {look->connection_share, SHARE_ABOVE, look->connection_share > SHARE_ABOVE},
        [ALERT_USE] = {look->connection_use, USE_BELOW, look->connection_use < USE_BELOW},
    };
    int count = 0;
    for (int i = 0; i < ALERT_RULES; i++) {
        if (rule[i].holds && !alerts->raised[i]) {
            out[count] = (struct alert){(enum alert_rule)i, rule[i].value, rule[i].baseline, ""};
            describe(&out[count++]);
        }
        alerts->raised[i] = rule[i].holds;
    }
    remember(alerts, look);
    return count;
}
