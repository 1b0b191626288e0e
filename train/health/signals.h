/* Requests to stop: INT (Ctrl-C), TERM (schedulers), USR1 and USR2 (Slurm's --signal, or by hand). The system
 * holds them back from all threads, and one that does nothing else waits for them. Handlers must not run on a
 * computing thread: the AVX-512 matrix products of oneDNN 2.6 keep data far below the stack pointer, where a
 * handler's frame goes, and one signal in ten crashed the run. And of two signals that are held back only one
 * is there to be found after a step, whereas the second INT is to end the process at once.
 *
 * Open MPI's mpirun ends a job by CONT, TERM and KILL, some seconds apart (train/health/launcher.h): its
 * CONT, which comes at once, counts as TERM. */
#ifndef GDN_SIGNALS_H
#define GDN_SIGNALS_H

#include <stdbool.h>

/* Holds the signals back from now on, and starts the thread that waits for them. The first INT says on
 * standard error what it has begun, where this process `prints` for all; the second kills the process as if
 * it had not been held back. An INT from the keyboard does nothing to a process that was started with INT
 * ignored, as shells start what runs in the background. To be called once, before any other thread is
 * started, since threads inherit this, and before MPI. Also, a write to a pipe or socket that nobody reads
 * fails from now on, without a signal. GDN_INTERNAL where there can be no thread. */
int signals_hold(bool prints);

/* The signal that has asked this process to stop last, 0 where none has. */
int signals_received(void);

/* From now on requests are too late and nothing is said of them: to be called when the run has ended. */
void signals_quiet(void);

#endif
