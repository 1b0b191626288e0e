/* The threads of one block. A warp's threads start one after another on the same stack until one of them
 * waits; that thread keeps the fiber, and another fiber continues with the next thread, so kernels without
 * barriers cost no switches. When every thread of the warp has ended or waits, those whose exchange is
 * complete are resumed, until the warp has ended or waits for the block's barrier; then the next warp
 * runs. After the last warp the barrier opens. Where no thread can be resumed, the block is deadlocked: a
 * fault. */
#include "emulated.h"

#include <stdio.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

enum state { NOT_BEGUN, READY, AT_BARRIER, IN_WARP, ENDED };

struct thread {
    enum state state;
    struct fiber *fiber; /* while it waits */
    int line;            /* where it waits */
    /* In a warp: what it brings, and what it takes with it. */
    enum emulated_exchange kind;
    unsigned mask;
    int source;
    uint64_t value, result;
};

static struct thread threads[BLOCK_MAX];
static uint3 places[BLOCK_MAX]; /* threadIdx of each */
static int count;               /* of the block's threads */
static int first, lanes;        /* the warp that runs */
static int begun, resumed;      /* of its threads, in this round */
static bool descending;         /* the last warp and lane run first */
static int current = -1;        /* the thread that runs; −1: none */
static struct fiber *fiber_now = &fiber_main;
static struct fiber *abandoned; /* by the thread that ran last, in a fault; or NULL */
static std::vector<struct fiber *> &idle = *new std::vector<struct fiber *>(); /* at the top of serve() */
static const std::function<void()> *code;

static void enter(int thread) {
    current = thread;
    threadIdx = places[thread];
}

/* The thread whose turn is the i-th in the warp. */
static int turn(int i) {
    return first + (descending ? lanes - 1 - i : i);
}

static void serve(void);

/* Who goes on in this round: a fiber for threads to begin on, or the next thread's, which is entered. */
static struct fiber *next_fiber(void) {
    if (begun < lanes) {
        if (idle.empty()) return fiber_make(serve);
        struct fiber *fiber = idle.back();
        idle.pop_back();
        return fiber;
    }
    while (resumed < lanes) {
        int thread = turn(resumed++);
        if (threads[thread].state != READY) continue;
        enter(thread);
        return threads[thread].fiber;
    }
    return &fiber_main;
}

static void pass_on(void) {
    struct fiber *from = fiber_now;
    fiber_now = next_fiber();
    fiber_switch(from, fiber_now);
}

/* A fiber's life. */
static void serve(void) {
    for (;;) {
        while (begun < lanes) {
            enter(turn(begun++));
            (*code)();
            threads[current].state = ENDED;
        }
        idle.push_back(fiber_now);
        pass_on();
    }
}

static void wait_here(enum state state, int line) {
    struct thread *me = &threads[current];
    me->state = state;
    me->line = line;
    me->fiber = fiber_now;
    pass_on();
}

int emulated_lane(void) {
    return current % WARP_SIZE;
}

void emulated_barrier(int line) {
    wait_here(AT_BARRIER, line);
}

uint64_t emulated_meet(enum emulated_exchange kind, int line, unsigned mask, uint64_t value, int source) {
    struct thread *me = &threads[current];
    me->kind = kind;
    me->mask = mask;
    me->value = value;
    me->source = source;
    wait_here(IN_WARP, line);
    return me->result;
}

bool block_runs(void) {
    return current >= 0;
}

void block_abandon(void) {
    abandoned = fiber_now;
    fiber_now = &fiber_main;
    fiber_switch(abandoned, fiber_now);
    __builtin_unreachable();
}

static const char *place(void) {
    static char text[80];
    snprintf(text, sizeof text, "in block (%u, %u, %u)", blockIdx.x, blockIdx.y, blockIdx.z);
    return text;
}

/* Whether all lanes that `one` waits for are there, too; those that have ended are not waited for. */
static bool complete(const struct thread *warp, const struct thread *one) {
    if (!(one->mask >> (one - warp) & 1)) return false;
    for (int i = 0; i < lanes; i++) {
        const struct thread *t = &warp[i];
        if (!(one->mask >> i & 1) || t->state == ENDED) continue;
        if (t->state != IN_WARP || t->kind != one->kind || t->mask != one->mask) return false;
        if (t->kind != EMULATED_SYNC && t->line != one->line) return false;
    }
    return true;
}

/* Hands out what the lanes of `mask` brought, and lets them go. */
static void exchange(struct thread *warp, unsigned mask, enum emulated_exchange kind) {
    unsigned there = 0, ballot = 0;
    for (int i = 0; i < lanes; i++)
        if (mask >> i & 1 && warp[i].state == IN_WARP) {
            there |= 1u << i;
            ballot |= (unsigned)(warp[i].value & 1) << i;
        }
    for (int i = 0; i < lanes; i++) {
        if (!(there >> i & 1)) continue;
        int source = warp[i].source;
        if (kind == EMULATED_SHUFFLE && !(there >> source & 1))
            fault(cudaErrorLaunchFailure,
                  "%s lane %d reads from lane %d, which takes no part in the shuffle on line %d", place(), i,
                  source, warp[i].line);
        warp[i].result = kind == EMULATED_BALLOT ? ballot : warp[source].value;
        warp[i].state = READY;
    }
}

static bool release_warp(void) {
    struct thread *warp = &threads[first];
    bool any = false;
    for (int i = 0; i < lanes; i++)
        if (warp[i].state == IN_WARP && complete(warp, &warp[i])) {
            exchange(warp, warp[i].mask, warp[i].kind);
            any = true;
        }
    return any && !faulted();
}

/* The first thread in a state; −1: none. */
static int first_in(enum state state) {
    for (int i = 0; i < count; i++)
        if (threads[i].state == state) return i;
    return -1;
}

static bool release_barrier(void) {
    int one = first_in(AT_BARRIER);
    if (one < 0 || first_in(IN_WARP) >= 0) return false;
    for (int i = 0; i < count; i++)
        if (threads[i].state == AT_BARRIER && threads[i].line != threads[one].line) return false;
    for (int i = 0; i < count; i++)
        if (threads[i].state == AT_BARRIER) threads[i].state = READY;
    return true;
}

static const char *waits(int thread) {
    static const char *const names[] = {"__syncwarp", "a shuffle", "a vote"};
    const struct thread *t = &threads[thread];
    return t->state == AT_BARRIER ? "__syncthreads" : names[t->kind];
}

static void fault_in_vain(void) {
    int one = -1, other = -1;
    for (int i = 0; i < count; i++) {
        if (threads[i].state == ENDED) continue;
        if (one < 0) one = i;
        if (threads[i].state != threads[one].state || threads[i].line != threads[one].line) other = i;
    }
    if (other < 0)
        fault(cudaErrorLaunchFailure, "%s thread %d waits at %s on line %d for lanes that never come",
              place(), one, waits(one), threads[one].line);
    else
        fault(cudaErrorLaunchFailure,
              "%s thread %d waits at %s on line %d while thread %d waits at %s on line %d", place(), one,
              waits(one), threads[one].line, other, waits(other), threads[other].line);
}

/* After a fault: fibers in the middle of a thread begin anew. */
static void clean_up(void) {
    for (int i = 0; i < count; i++) {
        enum state state = threads[i].state;
        if (i == current || state == NOT_BEGUN || state == ENDED) continue;
        fiber_reset(threads[i].fiber);
        idle.push_back(threads[i].fiber);
    }
    if (!abandoned) return;
    fiber_reset(abandoned);
    idle.push_back(abandoned);
}

/* Lets every thread of the warp that can begin, or else go on. */
static void run_round(bool from_begin) {
    begun = from_begin ? 0 : lanes;
    resumed = from_begin ? lanes : 0;
    pass_on();
    if (!abandoned) current = -1;
}

/* Runs each warp until it waits for the block. */
static void run_warps(bool from_begin) {
    for (int i = 0; i < count && !abandoned && !faulted(); i += WARP_SIZE) {
        first = descending ? (count - 1 - i) / WARP_SIZE * WARP_SIZE : i;
        lanes = count - first < WARP_SIZE ? count - first : WARP_SIZE;
        run_round(from_begin);
        while (release_warp()) run_round(false);
    }
}

static bool all_ended(void) {
    for (int i = 0; i < count; i++)
        if (threads[i].state != ENDED) return false;
    return true;
}

static void lay_out(void) {
    static dim3 last(0, 0, 0);
    if (last.x == blockDim.x && last.y == blockDim.y && last.z == blockDim.z) return;
    last = blockDim;
    uint3 *at = places;
    for (unsigned z = 0; z < blockDim.z; z++)
        for (unsigned y = 0; y < blockDim.y; y++)
            for (unsigned x = 0; x < blockDim.x; x++) *at++ = {x, y, z};
}

bool block_run(const std::function<void()> &kernel, bool backwards) {
    lay_out();
    count = (int)(blockDim.x * blockDim.y * blockDim.z);
    abandoned = NULL;
    descending = backwards;
    code = &kernel;
    for (int i = 0; i < count; i++) threads[i].state = NOT_BEGUN;
    run_warps(true);
    while (!faulted() && release_barrier()) run_warps(false);
    bool good = !faulted() && all_ended();
    if (!good && !faulted()) fault_in_vain();
    if (!good) clean_up();
    current = -1;
    return good;
}
