/* Rules by which a run is said to have become slow, or its connections dear or idle. A rule speaks when its
 * condition becomes true, and again only after it was false. The first two compare with the mean of the last
 * ALERT_HISTORY looks, and are silent until there are as many. */
#ifndef GDN_MONITOR_ALERT_H
#define GDN_MONITOR_ALERT_H

#include <stdbool.h>

enum { ALERT_HISTORY = 10 };
enum alert_rule { ALERT_LATENCY, ALERT_THROUGHPUT, ALERT_SHARE, ALERT_USE, ALERT_RULES };

extern const char *const alert_rule_name[ALERT_RULES]; /* "latency", "throughput", "connection_share", … */

struct alerts {
    double p95[ALERT_HISTORY], rate[ALERT_HISTORY]; /* rings */
    int count, next;
    bool raised[ALERT_RULES]; /* conditions that hold as of the last look */
};

/* What is looked at; NAN: not known, so that its rule does not hold. */
struct alert_look {
    double p95;               /* seconds of a step: more than 20 % above the mean */
    double tokens_per_second; /* more than 15 % below */
    double connection_share;  /* of a step's seconds: above 0.3 */
    double connection_use;    /* effective over active connections: below 0.3 */
};

struct alert {
    enum alert_rule rule;
    double value, baseline; /* the mean, or the bound */
    char words[160];
};

/* Fills `out` [ALERT_RULES] with the rules that speak now; returns how many. */
int alerts_look(struct alerts *alerts, const struct alert_look *look, struct alert *out);

#endif
