/* A library to preload (LD_PRELOAD) by which a rank that waits long sleeps.
 *
 * Open MPI's waits turn in a loop and, where told to yield, give up the processor in each turn, for no time at
 * all if nothing else is ready. Of eight ranks on two cores the waiting ones so took two thirds of the processor
 * time where other programs wanted it. Here turns that follow each other yield for twenty milliseconds, as most
 * messages come soon and a virtual machine wakes slowly (with two, four ranks on two cores took three times as
 * long, three such tests at once half as long again), and then last a 32nd of what they have waited, at most one
 * millisecond.
 *
 * Copies are in all processes of a test. Besides Open MPI the emulated device's queues yield, which wait likewise. */
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds: between turns of one wait at most; yielded; slept at most. And of what part of a wait a sleep is. */
enum { BETWEEN = 20000, SOON = 20000000, LONGEST = 1000000, PART = 32 };

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int sched_yield(void) {
    static _Thread_local long long began, last;
    const long long time = now();
    if (time - last > BETWEEN) began = time;
    const long long waited = time - began, part = waited / PART;
    if (waited < SOON)
        syscall(SYS_sched_yield);
    else
        nanosleep(&(struct timespec){.tv_nsec = part > LONGEST ? LONGEST : part}, NULL);
    last = now();
    return 0;
}
