/* Fibers: stacks for the threads of a block that wait for each other.
 *
 * A switch saves what a called function must keep and changes the stack; on processors other than x86-64 the
 * C library's slower swapcontext does it. The address sanitizer is told of each switch. */
#include "emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#include <ucontext.h>
#endif

struct fiber {
#ifdef __x86_64__
    void *sp;
#else
    ucontext_t context;
#endif
    char *stack; /* [FIBER_STACK]; fiber_main: as the sanitizer says */
    size_t stack_size;
    size_t shift; /* of the end of what is used: stacks that all end alike would fight for the same cache
                     lines */
    void (*body)(void);
    void *fake; /* the sanitizer's */
};

struct fiber fiber_main;
static struct fiber *came_from;

static void arrive(struct fiber *self) {
#ifdef __SANITIZE_ADDRESS__
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(self->fake, &stack, &size);
    if (came_from == &fiber_main) {
        fiber_main.stack = (char *)stack;
        fiber_main.stack_size = size;
    }
#else
    (void)self;
#endif
}

static struct fiber *going_to;

static void begin(void) {
    struct fiber *self = going_to;
    arrive(self);
    self->body();
    abort();
}

#ifdef __x86_64__
/* (void **save, void *load): the registers that a call must keep go to the stack, whose end goes to *save. */
extern "C" void gdn_emulated_switch(void **save, void *load);
asm(".text\n"
    ".hidden gdn_emulated_switch\n"
    ".globl gdn_emulated_switch\n"
    ".type gdn_emulated_switch, @function\n"
    "gdn_emulated_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size gdn_emulated_switch, . - gdn_emulated_switch\n");
#endif

void fiber_reset(struct fiber *fiber) {
    fiber->fake = NULL;
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(fiber->stack, FIBER_STACK);
#endif
#ifdef __x86_64__
    void **top = (void **)(fiber->stack + FIBER_STACK - fiber->shift);
    *--top = NULL; /* where begin() would return to; the stack is aligned as behind a call */
    *--top = (void *)begin;
    for (int i = 0; i < 6; i++) *--top = NULL;
    fiber->sp = top;
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = FIBER_STACK;
    makecontext(&fiber->context, begin, 0);
#endif
}

struct fiber *fiber_make(void (*body)(void)) {
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    void *memory =
        mmap(NULL, guard + FIBER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("emulated device: no memory for a thread's stack");
        abort();
    }
    mprotect(memory, guard, PROT_NONE);
    struct fiber *fiber = new struct fiber();
    fiber->stack = (char *)memory + guard;
    fiber->stack_size = FIBER_STACK;
    static size_t made;
    fiber->shift = made++ % 32 * 128;
    fiber->body = body;
    fiber_reset(fiber);
    return fiber;
}

void fiber_switch(struct fiber *from, struct fiber *to) {
    came_from = from;
    going_to = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->fake, to->stack, to->stack_size);
#endif
#ifdef __x86_64__
    gdn_emulated_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrive(from);
}
