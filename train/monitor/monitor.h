/* Figures of a run while it goes, besides the lines of its steps: speed, memory, its connections, and
 * alerts. At the end of every monitor.interval-th step: events `monitor` and `alert` in metrics.jsonl,
 * curves in TensorBoard, RUN/metrics.prom for Prometheus; and events `gates` (train.gate_interval).
 * interfaces.md has their keys. Rank 0 writes; sums and maxima over ranks are gathered at these events
 * alone. Times are rank 0's, those of connections a mean over ranks. Nothing here allocates after
 * creation. A failure to write metrics.prom does not end the run: it is recorded once, as an event
 * `monitor_failed`. Functions accept a NULL monitor and do nothing. */
#ifndef GDN_MONITOR_H
#define GDN_MONITOR_H

#include "train/records/progress.h"
#include "train/run/run.h"
#include "train/records/rundir.h"

struct monitor; /* opaque */

/* Of a run that is about to start; all three outlive the monitor. Reserves everything. Collective.
 * GDN_INTERNAL without memory. */
int monitor_create(struct run *run, struct rundir *rundir, struct progress *progress, struct monitor **out);
void monitor_free(struct monitor *monitor);

/* The run has started and is recorded: metrics.prom says so. Not collective. */
void monitor_start(struct monitor *monitor);

/* A step is done and recorded: writes what is due. Collective; a failure of the mesh shows in its axes. */
void monitor_step(struct monitor *monitor, const struct step_report *report);

/* What the trainer has computed since the last step was none: connections' time in it is not of the next one.
 * Not collective. */
void monitor_no_step(struct monitor *monitor);

/* An evaluation is done: run->evaluation has its results. Not collective. */
void monitor_evaluation(struct monitor *monitor);

/* Training has waited so many seconds for a checkpoint, written or failed. Not collective. */
void monitor_stall(struct monitor *monitor, double seconds);

/* The run ends with this status (kernels/base/status.h): metrics.prom says so. Not collective. */
void monitor_end(struct monitor *monitor, int status);

#endif
