/* How long a call of an operation takes.
 *
 * On the host a call is done when it returns: calls are timed one by one. On another device it is only
 * queued, so many are queued between two waits:
 *
 *     host    |q|q|q|q| … |q| wait                    |
 *     device      [ run ][ run ][ run ][ run ] … [ run ]
 *             0             queued                      all
 *
 *   seconds = all / calls: on the device, back to back. The way to the first run and back from the last is
 *             shared by so many calls that it hardly shows.
 *   queued  = what the host needs to queue one. Where it comes near `seconds`, the device has waited for the
 *             host and may be faster than it seems. */
#ifndef GDN_BENCH_TIME_H
#define GDN_BENCH_TIME_H

#include "kernels/base/device.h"

struct call_time {
    double seconds; /* the middle of several */
    double best;    /* the least of them */
    double queued;  /* the middle; 0 on the host */
};

/* Seconds on a clock that only runs forward. */
double bench_now(void);

/* The middle of `count` times, which are sorted in place. */
double bench_median(double *seconds, int count);

/* Times call(context), which uses one device, again and again for about `enough` seconds, after calls that
 * do not count. */
struct call_time bench_time(const struct device *device, void (*call)(const void *context),
                            const void *context, double enough);

#endif
