/* A library to preload (LD_PRELOAD) by which a rank that waits sleeps.
 *
 * Open MPI's waits turn in a loop and, where told to yield, give up the processor in each turn, for no time at
 * all if nothing else is ready. Of eight ranks on two cores the waiting ones so took two thirds of the processor
 * time. Here each such turn lasts 50 microseconds, which a message may now be late.
 *
 * Copies are in all processes of a test; only Open MPI yields in them. */
#include <sched.h>
#include <time.h>

int sched_yield(void) {
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    return 0;
}
