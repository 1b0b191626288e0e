#include "train/signals.h"

#include <signal.h>
#include <stddef.h>

static const struct {
    int number;
    const char *name;
} stops[] = {{SIGTERM, "TERM"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}};

enum { STOPS = sizeof stops / sizeof stops[0] };

static volatile sig_atomic_t received;

static void remember(int number) {
    received = number;
}

void signals_install(void) {
    struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < STOPS; i++) sigaction(stops[i].number, &action, NULL);
}

int signals_received(void) {
    return received;
}

const char *signals_name(int number) {
    for (int i = 0; i < STOPS; i++)
        if (stops[i].number == number) return stops[i].name;
    return "";
}
