/* The emulated device's insides; include/cuda_runtime.h says what it is.
 *
 *     fiber.cc    stacks, and switching between them
 *     block.cc    the threads of one block: each runs until it waits or ends; barriers, warps
 *     launch.cc   a grid's blocks, one after another; what a launch may ask for; shared memory
 *     queue.cc    streams and events: work is kept until somebody waits, and then done in an unkind order
 *     graph.cc    work that is captured
 *     replay.cc   what was captured, queued again
 *     memory.cc   device memory, and when the host may touch it
 *     copy.cc     copies, and giving memory back
 *     guard.cc    memory accesses that the hardware refuses
 *     device.cc   properties
 *     fault.cc    the first fault and its words
 *
 * Everything runs on the host's calling thread, one thread of one block at a time. Faults that are found:
 * threads that wait for each other at different places, lanes that are missing from a shuffle, launches
 * beyond the limits of sm_90, and accesses outside of device or dynamic shared memory. New device memory and
 * shared memory hold NaN. The environment:
 *
 *     GDN_EMULATED_MEMORY   bytes of device memory; 8 GiB
 *     GDN_EMULATED_ORDER    late: streams that nobody waits for do nothing; early: they do all they can first
 *     GDN_EMULATED_STRICT   1: the host may not touch device memory, though it lies in its own */
#ifndef GDN_EMULATED_H
#define GDN_EMULATED_H

#include <cuda_runtime.h>

#include <string>
#include <vector>

/* ---- fiber.cc: a stack of its own each; what runs on none of them runs on `fiber_main`. */
struct fiber;
extern struct fiber fiber_main;
enum { FIBER_STACK = 128 << 10 };
/* A fiber that will call body(), which must not return. */
struct fiber *fiber_make(void (*body)(void));
/* Makes a fiber begin anew, whatever it was doing. */
void fiber_reset(struct fiber *fiber);
void fiber_switch(struct fiber *from, struct fiber *to);

/* ---- block.cc */
enum { WARP_SIZE = 32, BLOCK_MAX = 1024 };
/* Runs a block of the launch's blockDim threads, in descending order where `backwards`. False: a fault. */
bool block_run(const std::function<void()> &kernel, bool backwards);
/* Whether a kernel's thread is running, and the end of its block. */
bool block_runs(void);
[[noreturn]] void block_abandon(void);

struct emulated_event {
    struct emulated_stream *stream; /* that it was recorded on */
    unsigned long recorded, done;   /* how often */
    unsigned captured;              /* in this capture last; 0: in none */
    int waiting;                    /* tasks of streams that wait for it */
    bool destroyed;                 /* and goes with the last of them */
};

/* A task of a graph: work, when it is ready where that is asked, or an event of the graph's that is recorded,
 * or waited for. */
struct emulated_node {
    std::string name;
    std::function<void()> work;
    std::function<bool()> ready;
    int stream, record, wait; /* the graph's; −1: none */
};

struct emulated_graph {
    std::vector<struct emulated_node> nodes;
    int streams, events;
    /* Once it can be launched: */
    std::vector<cudaStream_t> own;  /* [streams] */
    std::vector<cudaEvent_t> event; /* [events + 2], the last two of a launch's end and start */
};

/* ---- graph.cc: is work for this stream captured; captures it; a fault where a capture does not allow the
 * call, or none does with a captured event. */
bool graph_captures(cudaStream_t stream);
void graph_add(cudaStream_t stream, const char *name, std::function<bool()> ready,
               std::function<void()> work);
bool graph_refuses(const char *call);
bool graph_refuses_event(const char *call, cudaEvent_t event);
/* Whether recording an event, or waiting for one, was a capture's affair. */
bool graph_records(cudaEvent_t event, cudaStream_t stream);
bool graph_waits(cudaStream_t stream, cudaEvent_t event);

/* ---- queue.cc: has a stream nothing left to do. */
bool queue_empty(cudaStream_t stream);

/* ---- memory.cc: device memory is the host's to touch between close and open. */
void memory_open(void);
void memory_close(void);
/* Whether something was written around a piece of device memory. */
bool memory_overrun(void);
bool memory_holds(const void *at);
/* memset of device memory, between open and close. */
void memory_set(void *memory, int value, size_t bytes);
/* Gives a piece back that no work uses any more. */
cudaError_t memory_give(void *memory);

/* ---- guard.cc: from now on, and no more. `holds`: whether it is device memory, for messages. */
void guard_begin(bool (*holds)(const void *at));
void guard_end(void);

/* ---- fault.cc: the first fault, which no call gets past; names what runs. */
void fault(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));
cudaError_t faulted(void);
/* The name of the kernel or other work that runs, or NULL. */
extern const char *running;
/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t returned(cudaError_t error);

#endif
