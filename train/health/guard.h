/* Ends a process that MPI_Init or MPI_Finalize does not return from. The watchdog (watchdog.h) cannot work
 * there, since ranks cannot exchange messages and MPI_Abort must not be called. A thread of the process
 * measures time by its own clock alone, prints on standard error which rank this is and what it waits in,
 * and exits with status 1; the launcher then ends the other ranks. The lowest rank exits first, the others
 * a few seconds later, so that there is one message even where the lowest rank is the one that is stopped.
 * Which rank is the cause is not known here. Time counts only while the thread itself runs, as in the
 * watchdog. One guard at a time in a process. */
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
