/* Ends a process that MPI's beginning or end does not return from. There the watchdog (watchdog.h) cannot
 * work: ranks cannot ask each other, and MPI_Abort is not to be called. So a thread of the process looks at
 * the clock alone, says on standard error which rank this is and what it waits in, and leaves with status 1,
 * upon which the launcher ends the others. The lowest rank is the first to; the next ones leave it some
 * seconds, so that there is one message, and come after it where it is the one that was stopped.
 *
 * Who holds the others up is not known here. Time counts only while the thread itself runs, as the watchdog's
 * does. One at a time in a process. */
#ifndef GDN_GUARD_H
#define GDN_GUARD_H

#include "train/config/config.h"

enum guarded { GUARD_INIT, GUARD_FINALIZE };

/* Takes watchdog.start for MPI_Init and watchdog.checkpoint for MPI_Finalize (0: never); before, 1800 seconds
 * each. */
void guard_limits(const struct watchdog_config *config);

/* Watches from here to guard_end. `rank`: −1: not known. Without a thread there is no guard. */
void guard_begin(enum guarded what, int rank);
void guard_end(void);

#endif
