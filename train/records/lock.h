/* The lock of a run directory: one training run at a time. An advisory lock on the file `.lock` there, which
 * says who holds it and goes with the process that holds it, so a killed run leaves nothing to clean up. */
#ifndef GDN_LOCK_H
#define GDN_LOCK_H

#include <stdbool.h>

struct lock {
    int file; /* descriptor; −1: not held */
};

/* Takes the lock of `directory`. With `create` false, a directory without a lock file is left as it is and
 * the lock is not held after success. Not collective: one rank takes it for all. GDN_INPUT where another
 * process holds it (names its pid and host) or the file cannot be written. */
int lock_take(const char *directory, bool create, struct lock *lock);

void lock_release(struct lock *lock);

#endif
