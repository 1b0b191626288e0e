/* Requests to stop: TERM (schedulers), USR1 and USR2 (Slurm's --signal, or by hand). The system holds them
 * back and they are asked for between steps. Handlers must not run on a computing thread: the AVX-512 matrix
 * products of oneDNN 2.6 keep data far below the stack pointer, where a handler's frame goes, and one signal
 * in ten crashed the run. */
#ifndef GDN_SIGNALS_H
#define GDN_SIGNALS_H

/* Holds the signals back from now on. To be called before any other thread is started, since threads inherit
 * this. */
void signals_hold(void);

/* The signal that has asked this process to stop, 0 where none has. */
int signals_received(void);

/* "TERM", "USR1", "USR2"; "" for any other number. */
const char *signals_name(int number);

#endif
