/* The watchdog: ends a run that hangs, and says who holds it up and where everybody is.
 *
 * A thread of each rank looks five times a second at what the process says of itself
 * (dist/mpi/activity.h) and sleeps otherwise. Where a phase lasts longer than it may, its rank tells all
 * others where it is, over a communicator of its own; whoever hears of that does the same. The ranks that are
 * heard from within a few seconds are those that answer. The lowest of them prints on standard error what
 * hang.h makes of it, and ends the job with MPI_Abort and status 1; should it fail to, the next ones do. This
 * works while the main thread hangs in MPI, in a file system or in a computation, and with peers that are
 * stopped or gone. It is, like ranks_abort, a place that ends the program.
 *
 * Time counts only while the thread itself runs: a whole job that is stopped and continued, or a machine that
 * sleeps, is not a run that hangs. */
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
