#include "train/health/guard.h"

#include "kernels/base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In seconds, as in watchdog.c. */
static const double LOOK = 0.2, ASLEEP = 2;
static const double PRINTING = 5; /* that a lower rank has to end the job, before the next does */

static struct {
    const char *const call, *const key;
    double limit;
} guarded[] = {
    [GUARD_INIT] = {"MPI_Init", "watchdog.start", 1800},
    [GUARD_FINALIZE] = {"MPI_Finalize", "watchdog.checkpoint", 1800},
};

static struct {
    enum guarded what;
    int rank;
    bool started, end;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

void guard_limits(const struct watchdog_config *config) {
    guarded[GUARD_INIT].limit = config->start;
    guarded[GUARD_FINALIZE].limit = config->checkpoint;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void end_process(double waited) {
    char text[700], who[40] = "this process", host[64] = "unknown host";
    if (guard.rank >= 0) snprintf(who, sizeof who, "rank %d", guard.rank);
    gethostname(host, sizeof host - 1);
    int length = snprintf(
        text, sizeof text,
        "gdn: %s on %s waits in %s, for %.1f s; %s is %g\n"
        "     Either another rank does not come there, or the network or MPI hangs; or it just takes long "
        "here: then\n     raise %s (seconds, 0: never). All ranks are ended.\n",
        who, host, guarded[guard.what].call, waited, guarded[guard.what].key, guarded[guard.what].limit,
        guarded[guard.what].key);
    /* Straight to the descriptor: a thread that hangs may hold the stream's lock. */
    if (write(STDERR_FILENO, text, (size_t)length) < 0) length = 0;
    _exit(GDN_INTERNAL);
}

/* Sleeps; whether it is over. */
static bool rest(void) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK * 1e9);
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_mutex_lock(&guard.lock);
    while (!guard.end && !pthread_cond_clockwait(&guard.wake, &guard.lock, CLOCK_MONOTONIC, &until)) continue;
    bool end = guard.end;
    pthread_mutex_unlock(&guard.lock);
    return end;
}

static void *watch(void *unused) {
    (void)unused;
    int turn = guard.rank < 0 ? 0 : guard.rank < 2 ? guard.rank : 2;
    double waited = 0, limit = guarded[guard.what].limit + PRINTING * turn;
    for (double last = seconds(); !rest();) {
        double now = seconds(), passed = now - last;
        last = now;
        waited += passed > ASLEEP ? LOOK : passed;
        if (waited > limit) end_process(waited);
    }
    return NULL;
}

void guard_begin(enum guarded what, int rank) {
    sigset_t all, before;
    if (guarded[what].limit <= 0) return;
    guard.what = what, guard.rank = rank, guard.end = false;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    guard.started = !pthread_create(&guard.thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void guard_end(void) {
    if (!guard.started) return;
    pthread_mutex_lock(&guard.lock);
    guard.end = true;
    pthread_cond_signal(&guard.wake);
    pthread_mutex_unlock(&guard.lock);
    pthread_join(guard.thread, NULL);
    guard.started = false;
}
