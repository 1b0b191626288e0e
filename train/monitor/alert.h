/* Alert rules: a run has become slow, or its connections expensive or idle. A rule raises an alert when
 * its condition has held at every sample for ALERT_STEPS steps and ALERT_SECONDS seconds, and at
 * ALERT_LOOKS samples at least, since machines are shared and short delays mean nothing; it raises none
 * again until the condition has been false for as long. The first two rules compare with a baseline, the
 * mean of the last ALERT_HISTORY samples at which the condition did not hold, and need that many. A speed
 * that holds for ALERT_HISTORY samples more after the alert becomes the new baseline. */
#ifndef GDN_MONITOR_ALERT_H
#define GDN_MONITOR_ALERT_H

#include <stdbool.h>
#include <stdint.h>

enum { ALERT_HISTORY = 10, ALERT_LOOKS = 5 };
enum { ALERT_STEPS = 100 }; /* that figures are made of (WINDOW_STEPS): all figures are then of that time */
#define ALERT_SECONDS 60.0
enum alert_rule { ALERT_LATENCY, ALERT_THROUGHPUT, ALERT_SHARE, ALERT_USE, ALERT_RULES };

extern const char *const alert_rule_name[ALERT_RULES]; /* "latency", "throughput", "connection_share", … */

/* A sample, taken after step `step`. NAN: not known, so that its rule does not hold. */
struct alert_look {
    int64_t step;
    double seconds;            /* of any clock */
    double value[ALERT_RULES]; /* seconds of a step, the 95th percentile: more than 20 % above what is usual;
                                  tokens per second: more than 15 % below; connections' part of a step's
                                  seconds: above 0.3; effective over active connections: below 0.3 */
};

struct alerts {
    struct alert_state {
        double usual[ALERT_HISTORY]; /* a ring */
        int count, next;
        bool raised;     /* there was an alert, whose condition has not ended */
        int looks;       /* samples in a row that say otherwise than `raised` */
        int64_t since;   /* step of the first of them */
        double began;    /* and its time */
        double baseline; /* compared with during these, and while raised */
        int held;        /* samples since the alert at which it held */
    } rule[ALERT_RULES];
};

struct alert {
    enum alert_rule rule;
    double value, baseline; /* the mean, or the bound */
    char text[320];         /* what it is, and what to do about it */
};

/* Takes a sample. Fills `out` [ALERT_RULES] with the rules that raise an alert now; returns how many. */
int alerts_look(struct alerts *alerts, const struct alert_look *look, struct alert *out);

#endif
