/* The watchdog: ends a run that hangs, and reports which rank is the cause and where every rank is. A
 * thread of each rank looks five times a second at the process's activity (dist/mpi/activity.h) and sleeps
 * otherwise. Where a phase exceeds its time limit, the rank sends its activity to all others over a
 * communicator of its own, and every rank that receives one does the same. The lowest rank of those that
 * answer within a few seconds prints the report (hang.h) on standard error and ends the job with MPI_Abort
 * and status 1; if it fails to, the next ones do. This works while the main thread hangs in MPI, in a file
 * system or in a computation, and with peers that are stopped or dead. Like ranks_abort it ends the
 * program. Time counts only while the thread itself runs: a job that is stopped and continued, or a machine
 * that sleeps, is no hang. */
#ifndef GDN_WATCHDOG_H
#define GDN_WATCHDOG_H

#include "dist/mesh/mesh.h"
#include "train/config/config.h"

struct watchdog; /* opaque */

/* Starts to watch, in PHASE_START; *out is NULL where all time-outs are 0. The thread blocks all signals. MPI
 * was started by ranks_begin. Collective. GDN_INPUT, the same on all ranks, where several ranks cannot be
 * watched because this MPI lacks MPI_THREAD_MULTIPLE; GDN_INTERNAL. */
int watchdog_begin(const struct mesh *mesh, const struct watchdog_config *config, struct watchdog **out);

/* Ends it, once all ranks have come here, and until then watches. NULL: nothing. Collective, before
 * MPI_Finalize. */
void watchdog_end(struct watchdog *watchdog);

#endif
