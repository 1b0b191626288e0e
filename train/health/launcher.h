/* Who started this process, as far as that bears on how it may end.
 *
 * Asked to end a job (by Ctrl-C, TERM, or a rank that has left with a failure), Open MPI's mpirun sends its
 * ranks CONT, then TERM, then KILL, with odls_base_sigkill_timeout seconds after each: 1 where nobody sets
 * it. A step that takes longer is lost, and all since the last checkpoint with it. srun kills after a time
 * that the cluster sets (KillWait, 30 s mostly). */
#ifndef GDN_LAUNCHER_H
#define GDN_LAUNCHER_H

#include <stdbool.h>
#include <sys/types.h>

/* Seconds between mpirun's signals; INFINITY where no mpirun has started this process. */
double launcher_grace(void);

/* Whether the process is mpirun, or its helper on a node, and its CONT says that the job ends: where mpirun
 * hands on a terminal's signals (orte_forward_job_control), CONT may be just that. */
bool launcher_is(pid_t process);

#endif
