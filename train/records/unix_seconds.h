/* The clock on the wall, which schedulers and other machines go by too. */
#ifndef GDN_UNIX_SECONDS_H
#define GDN_UNIX_SECONDS_H

#include <time.h>

/* Seconds since 1970. */
static inline double unix_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
