#include "train/health/signals.h"

#include "kernels/base/status.h"
#include "train/health/launcher.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    atomic_int received;
    atomic_bool quiet;
    bool prints;      /* this rank says what all would */
    bool background;  /* INT was ignored when the process started */
    double grace;     /* seconds that mpirun leaves between its signals; INFINITY: no mpirun */
    sigset_t awaited; /* signals */
} self;

/* Straight to the descriptor, in one write: the main thread may hold the stream's lock. On a terminal in a
 * line of its own, since progress may stand in the present one. */
static void say(const char *text) {
    char line[256];
    if (!self.prints || self.quiet) return;
    int length = snprintf(line, sizeof line, "%sgdn: %s\n", isatty(STDERR_FILENO) ? "\n" : "", text);
    if (write(STDERR_FILENO, line, (size_t)length) < 0) return; /* nobody is there to be told */
}

/* As INT does to a process that knows nothing of it. */
static void end_at_once(void) {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
}

static void take_interrupt(const siginfo_t *about) {
    static bool again;
    if (self.background && about->si_code == SI_KERNEL) return;
    if (again) end_at_once();
    again = true;
    self.received = SIGINT;
    say("INT: stopping after this step, checkpoint is being saved; once more to end at once");
}

/* CONT of anybody else than mpirun continues a process that was stopped, which the system has done. */
static void take_continue(const siginfo_t *about) {
    char text[160];
    if (isinf(self.grace) || about->si_code != SI_USER || !launcher_is(about->si_pid)) return;
    self.received = SIGTERM;
    snprintf(text, sizeof text,
             "note: mpirun ends the job: stopping after this step, checkpoint is being saved; in %g s it "
             "kills all ranks",
             2 * self.grace);
    say(text);
}

static void *wait_for_signals(void *unused) {
    (void)unused;
    for (;;) {
        siginfo_t about;
        int number = sigwaitinfo(&self.awaited, &about);
        if (number == SIGINT)
            take_interrupt(&about);
        else if (number == SIGCONT)
            take_continue(&about);
        else if (number > 0)
            self.received = number;
    }
    return NULL;
}

static int start_thread(void) {
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, wait_for_signals, NULL);
    if (failed)
        return gdn_fail(GDN_INTERNAL, "the thread that waits for signals cannot be started: %s",
                        strerror(failed));
    pthread_setname_np(thread, "signals"); /* for top, debuggers and tests */
    pthread_detach(thread);
    return 0;
}

int signals_hold(bool prints) {
    static const int awaited[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};
    struct sigaction before;
    sigaction(SIGINT, NULL, &before);
    self.background = before.sa_handler == SIG_IGN;
    self.prints = prints;
    self.grace = launcher_grace();
    signal(SIGINT, SIG_DFL); /* what is ignored may not be held back */
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&self.awaited);
    for (size_t i = 0; i < sizeof awaited / sizeof *awaited; i++) sigaddset(&self.awaited, awaited[i]);
    pthread_sigmask(SIG_BLOCK, &self.awaited, NULL);
    return start_thread();
}

int signals_received(void) {
    return self.received;
}

void signals_quiet(void) {
    self.quiet = true;
}
