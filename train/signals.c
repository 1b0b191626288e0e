#include "train/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

static const struct {
    int number;
    const char *name;
} stops[] = {{SIGTERM, "TERM"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}};

enum { STOPS = sizeof stops / sizeof stops[0] };

static sigset_t stop_set(void) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < STOPS; i++) sigaddset(&set, stops[i].number);
    return set;
}

void signals_hold(void) {
    sigset_t set = stop_set();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int signals_received(void) {
    static int received; /* a request stays one */
    sigset_t set = stop_set();
    int number = sigtimedwait(&set, NULL, &(struct timespec){0, 0});
    if (number > 0) received = number;
    return received;
}

const char *signals_name(int number) {
    for (int i = 0; i < STOPS; i++)
        if (stops[i].number == number) return stops[i].name;
    return "";
}
