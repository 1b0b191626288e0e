/* Memory accesses that the host's hardware refuses.
 *
 * In a kernel they are a fault of that kernel, as they are on a GPU. Elsewhere they end the program, with a
 * word on what it was. The sanitizers have their own way. */
#include "emulated.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef __SANITIZE_ADDRESS__

static const int signals[] = {SIGSEGV, SIGBUS};
static bool (*is_device)(const void *at);
static struct sigaction before[2]; /* what is done at each of them while no queued work runs */

static void say(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) abort();
}

static void refused(int number, siginfo_t *info, void *) {
    if (block_runs()) {
        fault(cudaErrorIllegalAddress, "an illegal memory access");
        block_abandon();
    }
    if (running) {
        say("emulated device: an illegal memory access in ");
        say(running);
        say("\n");
    } else if (is_device(info->si_addr))
        say("emulated device: the host touched device memory\n");
    signal(number, SIG_DFL); /* the access is tried again */
}

/* The handler's stack: a thread of a kernel may have used up its own. */
static void make_stack(void) {
    enum { ROOM = 64 << 10 };
    static stack_t stack;
    if (stack.ss_sp) return;
    stack.ss_sp = malloc(ROOM);
    stack.ss_size = ROOM;
    sigaltstack(&stack, NULL);
}

void guard_begin(bool (*holds)(const void *at)) {
    struct sigaction action = {};
    action.sa_sigaction = refused;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER; /* it may not return */
    is_device = holds;
    make_stack();
    for (int i = 0; i < 2; i++) sigaction(signals[i], &action, &before[i]);
}

void guard_end(void) {
    for (int i = 0; i < 2; i++) sigaction(signals[i], &before[i], NULL);
}

#else

void guard_begin(bool (*)(const void *at)) {}
void guard_end(void) {}

#endif
