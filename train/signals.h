/* Requests to stop: TERM (schedulers), USR1 and USR2 (Slurm's --signal, or by hand) raise a flag that the
 * training loop looks at between steps. */
#ifndef GDN_SIGNALS_H
#define GDN_SIGNALS_H

/* Installs the handlers for the rest of the process. Not collective. */
void signals_install(void);

/* The signal that has asked this process to stop, 0 where none has. */
int signals_received(void);

/* "TERM", "USR1", "USR2"; "" for any other number. */
const char *signals_name(int number);

#endif
