/* Who started this process, as far as that bears on how it may end.
 *
 * Asked to end a job (by Ctrl-C, TERM, or a rank that has left with a failure), Open MPI's mpirun sends its
 * ranks CONT, then TERM, then KILL, with odls_base_sigkill_timeout seconds after each: 1 where nobody sets
 * it. A step that takes longer is lost, and all since the last checkpoint with it. srun kills after a time
 * that the cluster sets (KillWait, 30 s mostly). */
#ifndef GDN_LAUNCHER_H
#define GDN_LAUNCHER_H

/* Seconds between mpirun's signals; INFINITY where no mpirun has started this process. */
double launcher_grace(void);

#endif
