#include "train/bench/time.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* A device's queue takes about a thousand launches before the host must wait, and an operation may be
 * several. */
enum { MIN_SAMPLES = 7, MAX_SAMPLES = 400, MAX_QUEUED = 200 };
static const double long_enough = 5e-3; /* of a batch, against some 1e-5 of waiting */

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *seconds, int count) {
    qsort(seconds, (size_t)count, sizeof *seconds, ascending);
    return seconds[count / 2];
}

/* Seconds of `calls` calls between two waits; `queued`: until the last has returned. */
static double time_batch(const struct device *device, void (*call)(const void *), const void *context,
                         int calls, double *queued) {
    double start = bench_now();
    for (int i = 0; i < calls; i++) call(context);
    *queued = bench_now() - start;
    device->wait();
    return bench_now() - start;
}

/* How many calls make a batch long enough. The first call of all may load and prepare what later ones
 * find. */
static int batch_size(const struct device *device, void (*call)(const void *), const void *context) {
    double queued, one = time_batch(device, call, context, 1, &queued);
    if (device->host) return 1;
    for (int i = 0; i < 2; i++) one = fmin(one, time_batch(device, call, context, 1, &queued));
    return one * MAX_QUEUED < long_enough ? MAX_QUEUED : 1 + (int)(long_enough / one);
}

struct call_time bench_time(const struct device *device, void (*call)(const void *context),
                            const void *context, double enough) {
    double seconds[MAX_SAMPLES], queued[MAX_SAMPLES], spent = 0;
    int calls = batch_size(device, call, context), count = 0;
    for (; count < MAX_SAMPLES && (count < MIN_SAMPLES || spent < enough); count++) {
        double all = time_batch(device, call, context, calls, &queued[count]);
        spent += all;
        seconds[count] = all / calls;
        queued[count] /= calls;
    }
    struct call_time out = {.seconds = bench_median(seconds, count)};
    out.best = seconds[0];
    if (!device->host) out.queued = bench_median(queued, count);
    return out;
}
