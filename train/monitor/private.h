/* The monitor's state, and what its files offer each other. Private to train/monitor/. */
#ifndef GDN_MONITOR_PRIVATE_H
#define GDN_MONITOR_PRIVATE_H

#include "train/monitor/alert.h"
#include "train/monitor/window.h"
#include "train/records/progress.h"
#include "train/records/prometheus.h"
#include "train/records/rundir.h"
#include "train/run/run.h"

/* What an event `monitor` says. Figures that are not known are NAN. */
struct monitor_figures {
    double p50, p95, p99;     /* seconds of a step, of the last WINDOW_STEPS */
    double tokens_per_second; /* of the steps since the last event, over their seconds */
    double goodput;
    double connection_share; /* of the same, the mean of all ranks */
    double resident, device; /* bytes, of the rank that has most */
    int active;
    double effective;
};

struct monitor {
    struct run *run;
    struct rundir *rundir;
    struct progress *progress;
    double started;   /* MPI_Wtime at which the process started */
    double stall;     /* seconds */
    int64_t steps;    /* done in this start */
    double seconds;   /* that they took */
    double good;      /* of them those that counted */
    int64_t furthest; /* the last step that was done before, −1: none */
    struct window window;
    struct alerts alerts;
    double connection_seconds; /* model_connection_seconds after the last step */
    /* Since the last event `monitor`. */
    int64_t recent_sequences;
    double recent_seconds;

    struct step_report last; /* its set of edges is the step's: gone when another follows (pipeline_choose) */
    double flops;            /* of a token in it */
    struct monitor_figures figures; /* of the last event */
    struct run_max_memory memory;   /* reserved, as at the start */
    double effective;               /* connections, as of the last measurement; NAN: none yet */
    int measured;                   /* connections of which gate and contribution are known */
    double *sums;                   /* [2·edges] gate, contribution of each, over all ranks */
    double *gate, *contribution;    /* [edges] those measured, packed */
    int *layer, *distance;          /* [edges] and which they are */

    struct prometheus prometheus; /* rank 0 */
    double written;               /* MPI_Wtime of the last metrics.prom */
    bool failed;                  /* it cannot be written, which has been said */
};

/* monitor/gates.c: after a step that has measured them, takes gates and contributions over all ranks, and
 * records them. Collective. */
void monitor_measure_gates(struct monitor *monitor, const struct step_report *report);

/* exp of the entropy of the shares that each has in the sum: how many of them carry the whole (perplexity).
 * NAN where `count` is 0 or a contribution is not a number. */
double effective_connections(const double *contribution, int count);

/* monitor/export.c: metrics.prom as of now: `status` of a run that has ended, −1: it goes on. Failures are
 * told of once. */
void monitor_write_prometheus(struct monitor *monitor, int status);
/* Removes metrics.prom where there is one. Rank 0; failures are told of once. */
void monitor_remove_prometheus(struct monitor *monitor);
/* The figures in TensorBoard. */
void monitor_write_board(struct monitor *monitor);

/* monitor/system.c: bytes that this process has in memory now, and the seconds since it was started; 0: the
 * system does not tell. */
int64_t monitor_resident(void);
double monitor_age(void);

#endif
